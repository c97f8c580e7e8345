"""Placement: which engine, version, hardware and plan a manifest gets, and why each other candidate does not.

Filter, score, pick: rules and planner reject with a rule and numbers; among what is left the scores order; the best one
is pinned. Preferences are scores, never rules.
"""

from fleet.placement.choosing import choose, repin
from fleet.placement.decision import Candidate, Choice, Rejection, Score

__all__ = ["Candidate", "Choice", "Rejection", "Score", "choose", "repin"]
