"""The bundled model catalogue: every id has a configuration, aliases point at one, nobody else is known."""

import pytest

from fleet import model_catalogue


@pytest.mark.parametrize("model_id", model_catalogue.known_ids())
def test_every_known_model_has_a_configuration_that_names_its_architecture(model_id):
    found = model_catalogue.find(model_id)
    assert found is not None
    assert found.id == model_id
    assert found.config["architectures"]


def test_an_alias_says_whose_shape_it_has_and_its_own_precision():
    found = model_catalogue.find("Qwen/Qwen3-32B-AWQ")
    assert found is not None
    assert (found.shape_of, found.quantization) == ("Qwen/Qwen3-32B", "awq")


def test_a_model_that_nobody_wrote_down_is_not_known():
    assert model_catalogue.find("invented/model") is None
