"""The check digits of numbers that people carry."""

from collections.abc import Sequence

_VERHOEFF_TIMES = (
    "0123456789", "1234067895", "2340178956", "3401289567", "4012395678",
    "5987604321", "6598710432", "7659821043", "8765932104", "9876543210",
)  # fmt: skip
_VERHOEFF_MOVES = (
    "0123456789", "1576283094", "5803796142", "8916043527", "9453126870", "4286573901", "2793806415", "7046913258",
)  # fmt: skip
_ONCE = bytes.maketrans(b"0123456789", bytes(range(10)))
_TWICE = bytes.maketrans(b"0123456789", bytes(sum(divmod(2 * digit, 10)) for digit in range(10)))
_FISCAL_ODD = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23)


def passes_luhn(digits: str) -> bool:
    """Payment cards, and Canada's social insurance number."""
    data = digits.encode()
    return (sum(data[-1::-2].translate(_ONCE)) + sum(data[-2::-2].translate(_TWICE))) % 10 == 0


def passes_iban(iban: str) -> bool:
    """ISO 7064 mod 97-10 over the rearranged account number."""
    return int("".join(str(int(char, 36)) for char in iban[4:] + iban[:4])) % 97 == 1


def passes_verhoeff(digits: str) -> bool:
    """India's Aadhaar, which begins with 2 at least."""
    if digits[0] < "2":
        return False
    check = 0
    for place, digit in enumerate(reversed(digits)):
        check = int(_VERHOEFF_TIMES[check][int(_VERHOEFF_MOVES[place % 8][int(digit)])])
    return check == 0


def weighted(digits: str, weights: Sequence[int]) -> int:
    """The sum of digits times weights."""
    return sum(int(digit) * weight for digit, weight in zip(digits, weights, strict=False))


def passes_pesel(digits: str) -> bool:
    """Poland's number of a person; the century is in the month, in steps of twenty."""
    if not (1 <= int(digits[2:4]) % 20 <= 12 and 1 <= int(digits[4:6]) <= 31):
        return False
    return weighted(digits, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1)) % 10 == 0


def passes_cpf(digits: str) -> bool:
    """Brazil's number of a taxpayer."""
    first = weighted(digits, range(10, 1, -1)) * 10 % 11 % 10
    second = weighted(digits, range(11, 1, -1)) * 10 % 11 % 10
    return digits[9:] == f"{first}{second}" and len(set(digits)) > 1


def passes_dni(text: str) -> bool:
    """Spain's DNI and NIE (X, Y, Z stand for 0, 1, 2)."""
    number = text[:-1].translate({88: "0", 89: "1", 90: "2"})
    return "TRWAGMYFPDXBNJZSQVHLCKE"[int(number) % 23] == text[-1]


def passes_nir(text: str) -> bool:
    """France's social security number: the key is 97 less the rest of the number."""
    number = text[:13].replace("2A", "19").replace("2B", "18")
    if text[0] not in "12" or not number.isdigit():
        return False
    return 97 - int(number) % 97 == int(text[13:])


def passes_fiscal_code(text: str) -> bool:
    """Italy's codice fiscale."""
    total = 0
    for place, char in enumerate(text[:15]):
        value = int(char, 36) - (10 if char.isalpha() else 0)
        total += _FISCAL_ODD[value] if place % 2 == 0 else value
    return chr(65 + total % 26) == text[15]


def is_social_insurance_number(digits: str) -> bool:
    """Of Canada, where none begins with 0."""
    return digits[0] != "0" and passes_luhn(digits)


def is_social_security_number(digits: str) -> bool:
    """Of the USA: area 000, 666, group 00 and serial 0000 are never given; areas from 900 are taxpayer numbers."""
    return digits[:3] not in ("000", "666") and digits[3:5] != "00" and digits[5:] != "0000"
