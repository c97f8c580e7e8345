"""Prices that an environment states: the server's facts have them before the bundled ones."""

from pathlib import Path

import pytest

from control_plane.errors import SettingsError
from control_plane.main import assemble
from control_plane.settings import settings_of
from fleet.prices import bundled

PRICES = "prices: [{instance_type: g6.xlarge, usd_per_hour: 0.5, as_of: 2030-01, source: our contract}]\n"


def settings(folder: Path):
    return settings_of({"database_url": f"sqlite:///{folder}/house.db", "environment_dir": str(folder)})


def test_the_facts_of_the_server_have_the_prices_of_its_environment(tmp_path: Path):
    (tmp_path / "prices.yaml").write_text(PRICES)
    house = assemble(settings(tmp_path))
    prices = house.house.facts.current().prices
    house.store.close()
    assert prices.usd_per_hour("g6.xlarge") == 0.5
    assert prices.usd_per_hour("p5.48xlarge") == bundled().usd_per_hour("p5.48xlarge")


def test_a_price_without_its_day_stops_the_server_with_the_place(tmp_path: Path):
    (tmp_path / "prices.yaml").write_text(PRICES.replace("as_of: 2030-01, ", ""))
    with pytest.raises(SettingsError, match="/prices/0/as_of"):
        assemble(settings(tmp_path))
