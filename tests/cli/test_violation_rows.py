"""Violations for people: what refuses comes first, and residuals of one kind share a row."""

from cli.violations import Stated, rows_of, show_violations


def residual(record: str, what: str, *, severity: str = "advisory", tail: str = "") -> dict[str, object]:
    return {
        "rule": "advisory-residual",
        "severity": severity,
        "pointer": "/spec/engine/version",
        "message": f"vllm 0.33.0: {what} {record} (high): no source names a fix{tail}",
        "remedy": "find out",
        "advisory": record,
    }


REFUSED = {"rule": "four-pins", "severity": "mandatory", "pointer": "/spec", "message": "open", "remedy": "pin it"}


def test_what_refuses_comes_first(capsys) -> None:
    show_violations([residual("CVE-1", "no fix is known for"), REFUSED], title="chat")
    shown = capsys.readouterr().out
    assert shown.index("four-pins") < shown.index("advisory-residual")


def test_residuals_of_one_kind_share_a_row_and_others_do_not() -> None:
    stated = [
        residual("CVE-1", "no fix is known for"),
        residual("CVE-2", "it is unknown whether it has"),
        residual("CVE-3", "no fix is known for"),
        residual("CVE-4", "no fix is known for", severity="mandatory"),
        residual("CVE-5", "no fix is known for", tail="; triaged: accepted"),
    ]
    messages = [row["message"] for row in rows_of([Stated.of(item) for item in stated])]
    assert messages == [
        "vllm 0.33.0: no fix is known for 2 records: CVE-1 (high), CVE-3 (high)",
        stated[1]["message"],
        stated[3]["message"],
        stated[4]["message"],
    ]
