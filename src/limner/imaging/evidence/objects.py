"""The pixels of a photo -> the things and people in it, with the detector NanoDet.

Runs inside the OCR worker, with the runtime of the extra ``limner[eyes]``. ``data/NANODET.md`` says
where the weights come from.
"""

from __future__ import annotations

from importlib import import_module
from importlib.resources import files
from typing import Any

from limner.imaging.evidence.record import Box, DetectedObject

# Below this the detector names things that are not there: it took coins for clocks with 62 %.
LEAST_CONFIDENCE = 70
_SIDE = 416
# The grids of cells in which the model looks for objects of different sizes.
_GRIDS = (52, 26, 13)
# The model gives each side of a box as a distribution over so many distances.
_STEPS = 11
# Two boxes with the same name that share this part of their area are one object.
_SAME = 0.5
# As the model was trained: blue, green, red.
_MEAN, _DEVIATION = (103.53, 116.28, 123.675), (57.375, 57.12, 58.395)
_MAX_OBJECTS = 100
# In photos and scans fewer pixels than this equal their right neighbour, in percent.
_MOST_EQUAL = 45
_NAMES = (
    *("person", "bicycle", "car", "motorcycle", "airplane", "bus", "train", "truck", "boat"),
    *("traffic light", "fire hydrant", "stop sign", "parking meter", "bench", "bird", "cat"),
    *("dog", "horse", "sheep", "cow", "elephant", "bear", "zebra", "giraffe", "backpack"),
    *("umbrella", "handbag", "tie", "suitcase", "frisbee", "skis", "snowboard", "sports ball"),
    *("kite", "baseball bat", "baseball glove", "skateboard", "surfboard", "tennis racket"),
    *("bottle", "wine glass", "cup", "fork", "knife", "spoon", "bowl", "banana", "apple"),
    *("sandwich", "orange", "broccoli", "carrot", "hot dog", "pizza", "donut", "cake", "chair"),
    *("couch", "potted plant", "bed", "dining table", "toilet", "tv", "laptop", "mouse"),
    *("remote", "keyboard", "cell phone", "microwave", "oven", "toaster", "sink"),
    *("refrigerator", "book", "clock", "vase", "scissors", "teddy bear", "hair drier"),
    "toothbrush",
)


class ObjectDetector:
    """The model, loaded once and kept warm."""

    def __init__(self) -> None:
        self._np: Any = import_module("numpy")
        self._cv: Any = import_module("cv2")
        runtime: Any = import_module("onnxruntime")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        weights = files("limner.imaging.evidence").joinpath("data/nanodet.onnx").read_bytes()
        self._session = runtime.InferenceSession(
            weights, options, providers=["CPUExecutionProvider"]
        )
        self._input: str = self._session.get_inputs()[0].name

    def detect(self, pixels: Any) -> tuple[DetectedObject, ...]:
        """What is on a photo, the surest first; nothing if this is no photo."""
        return self._detect(pixels, least=LEAST_CONFIDENCE) if self._is_photo(pixels) else ()

    def _is_photo(self, pixels: Any) -> bool:
        equal = (pixels[:, 1:] == pixels[:, :-1]).all(axis=2)
        return 100 * float(equal.mean()) < _MOST_EQUAL

    def _detect(self, pixels: Any, *, least: int) -> tuple[DetectedObject, ...]:
        np = self._np
        height, width = pixels.shape[:2]
        small = self._cv.resize(
            np.ascontiguousarray(pixels), (_SIDE, _SIDE), interpolation=self._cv.INTER_AREA
        )
        blob = (small[:, :, ::-1].astype(np.float32) - np.float32(_MEAN)) / np.float32(_DEVIATION)
        outputs = self._session.run(None, {self._input: blob.transpose(2, 0, 1)[None]})
        found: list[DetectedObject] = []
        for scores, sides, grid in zip(outputs[:3], outputs[3:], _GRIDS, strict=True):
            sure_cells: list[tuple[int, int]] = np.argwhere(scores[0] * 100 >= least).tolist()
            for cell, number in sure_cells:
                box = self._box(sides[0][cell], cell, grid, width / _SIDE, height / _SIDE)
                sure = int(100 * float(scores[0][cell, number]))
                found.append(DetectedObject(name=_NAMES[number], confidence=sure, box=box))
        found.sort(key=lambda one: -one.confidence)
        kept: list[DetectedObject] = []
        for one in found:
            if all(
                one.name != other.name or _overlap(one.box, other.box) < _SAME for other in kept
            ):
                kept.append(one)
        return tuple(kept[:_MAX_OBJECTS])

    def _box(self, sides: Any, cell: int, grid: int, across: float, down: float) -> Box:
        np = self._np
        parts = sides.reshape(4, _STEPS)
        parts = np.exp(parts - parts.max(axis=1, keepdims=True))
        step = _SIDE / grid
        left, up, right, low = (parts / parts.sum(axis=1, keepdims=True)) @ np.arange(_STEPS) * step
        row, column = divmod(cell, grid)
        x, y = (column + 0.5) * step, (row + 0.5) * step
        x0, x1 = (round(float(min(max(one, 0), _SIDE)) * across) for one in (x - left, x + right))
        y0, y1 = (round(float(min(max(one, 0), _SIDE)) * down) for one in (y - up, y + low))
        return Box(x=x0, y=y0, width=x1 - x0, height=y1 - y0)


def _overlap(one: Box, other: Box) -> float:
    """The part of the area of both boxes that they share."""
    width = min(one.x + one.width, other.x + other.width) - max(one.x, other.x)
    height = min(one.y + one.height, other.y + other.height) - max(one.y, other.y)
    shared = max(0, width) * max(0, height)
    return shared / max(1, one.width * one.height + other.width * other.height - shared)
