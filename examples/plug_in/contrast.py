"""A tool for limner: the contrast of two colours."""

import limner


@limner.tool(trusted=True)
def contrast(first: str, second: str) -> float:
    """Measure the contrast of two colours, from 1 (none) to 21 (black on white).

    Args:
        first: a colour as six hexadecimal digits, such as ff8800.
        second: the other colour.
    """
    light, dark = sorted((_luminance(first), _luminance(second)), reverse=True)
    return round((light + 0.05) / (dark + 0.05), 2)


def _luminance(colour: str) -> float:
    red, green, blue = (_linear(int(colour[at : at + 2], 16) / 255) for at in (0, 2, 4))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(channel: float) -> float:
    return channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4
