"""A figure with its uncertainty: low, most likely, high."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Interval:
    """Three values in rising order; four of five measured points of the same kind lie between low and high."""

    low: float
    mid: float
    high: float

    def __post_init__(self) -> None:
        if not self.low <= self.mid <= self.high:
            raise ValueError(f"an interval rises: {self.low}, {self.mid}, {self.high}")

    @classmethod
    def exactly(cls, value: float) -> "Interval":
        """A figure without uncertainty."""
        return cls(value, value, value)

    @property
    def values(self) -> tuple[float, float, float]:
        """Low, mid, high."""
        return self.low, self.mid, self.high

    @property
    def width(self) -> float:
        """High over low: 1 for an exact figure; 0 for one that is nothing."""
        return self.high / self.low if self.low else 0.0

    def __add__(self, other: "Interval") -> "Interval":
        """The sum, as if both were low or high together: the widest one."""
        return Interval(self.low + other.low, self.mid + other.mid, self.high + other.high)

    def __mul__(self, factor: float) -> "Interval":
        """Scaled by a factor that is not negative."""
        return Interval(self.low * factor, self.mid * factor, self.high * factor)


NOTHING = Interval.exactly(0.0)
