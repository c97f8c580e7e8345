"""What a model is made of: layers with their kind of attention, weight tensors, experts, and what is not known.

The values are read from a Hugging Face ``config.json`` (`fleet.model_reading`); nothing here knows a model by name.
"""

from dataclasses import dataclass
from functools import cached_property

from fleet.tensors import Tensor
