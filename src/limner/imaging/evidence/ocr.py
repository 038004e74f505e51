"""Raw pixels -> the text in them, with the models of the extra ``limner[eyes]``.

Runs inside the OCR worker only, which loads the models before it enters the sandbox and then never
opens a file again. Nothing is downloaded: the models are files of the installed package.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from limner.errors import ImageTooLarge
from limner.imaging.evidence.objects import ObjectDetector
from limner.imaging.evidence.page import interpret, map_boxes, scaled
from limner.imaging.evidence.record import Box, OcrPage, PageReading, TextLine
from limner.imaging.limits import WorkerLimits

# Two pieces are in one row if they share this much of the height of the taller one.
_SHARED_HEIGHT = 0.4


MAX_LINES = 2000
MAX_LINE_CHARS = 500
# With less confidence the models invent letters in foliage and noise; short texts need more.
LEAST_CONFIDENCE = 80
LEAST_CONFIDENCE_SHORT = 90
# Chinese characters of one stroke: every edge and branch of a drawing looks like one.
_STROKES = "\u4e00\u4e28\u4e36\u4e3f\u4e85"
# The detector needs a gigabyte of memory for this many pixels.
BAND_PIXELS = 4_000_000
# A line that the edge of one band cuts is complete in the next.
OVERLAP_ROWS = 256
_MAX_THREADS = 4
# OCR finds isolated small print, such as the numbers along an axis, better if it is enlarged.
ENLARGED_PIXELS = 2_000_000
MAX_ENLARGEMENT = 1.5
# With fewer pieces of text no other direction is tried.
_LEAST_PIECES = 3


def load_libraries(limits: WorkerLimits) -> None:  # noqa: ARG001 - every worker has this signature
    """Import what the models need, without starting a thread."""
    # numpy would reserve memory for one thread per processor, and it only holds pixels here.
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    # onnxruntime would report its use to its maker, with a file in the home and a connection.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    # rapidocr itself would load these two only when they are used.
    for name in ("rapidocr.main", "rapidocr.inference_engine.onnxruntime"):
        import_module(name)


class TextRecognizer:
    """The models, loaded once and kept warm."""

    def __init__(self) -> None:
        self._numpy: Any = import_module("numpy")
        self._image: Any = import_module("PIL.Image")
        opencv: Any = import_module("cv2")
        # OpenCV would start threads at the first job, when the sandbox allows no new ones.
        opencv.setNumThreads(0)
        self._engine: Any = import_module("rapidocr").RapidOCR(params=_parameters())
        runtime: Any = import_module("rapidocr.inference_engine.onnxruntime")
        self._failures: tuple[type[Exception], ...] = (opencv.error, runtime.ONNXRuntimeError)
        # The first use loads a model. A blank page needs no second model, unless detection is off.
        blank = self._numpy.full((64, 320, 3), 255, self._numpy.uint8)
        self._engine(blank)
        self._engine(blank, use_det=False)
        self._detector = ObjectDetector()
        self._warm_up()

    def _warm_up(self) -> None:
        """Read a small page, since the libraries import some of their modules at first use."""
        pixels = self._numpy.full((60, 200, 3), 255, self._numpy.uint8)
        pixels[10:50, 10:90] = (200, 30, 30)
        pixels[25:35, 20:80:4] = 255
        rgb = pixels.tobytes()
        page = OcrPage(width=200, height=60, original_width=200, original_height=60, rgb=rgb)
        self.read(page)
        # Its first use loads more of the runtime, and only a photo uses it.
        self._detector.detect(self._numpy.arange(64 * 64 * 3, dtype="uint8").reshape(64, 64, 3))
        box = Box(x=20, y=22, width=60, height=16)
        line = TextLine(text="OK", box=box, confidence=99, row=0)
        interpret(pixels, [line], turned=0, recognize=self._recognize)

    def read(self, page: OcrPage) -> PageReading:
        """The text of a picture in reading order, and what its layout means.

        Boxes are in pixels of the original.
        """
        pixels = self._numpy.frombuffer(page.rgb, self._numpy.uint8)
        pixels = pixels.reshape(page.height, page.width, 3)
        scale = enlargement(page.width, page.height)
        found, turned = self._upright(self._enlarged(page, pixels, scale))
        lines = [replace(line, box=scaled(line.box, 1 / scale, 1 / scale)) for line in found]
        upright = self._numpy.rot90(pixels, turned // 90)
        rows = sort_into_rows(lines[:MAX_LINES])
        reading = interpret(upright, rows, turned=turned, recognize=self._recognize)
        found_objects = self._detector.detect(pixels)
        across, down = page.original_width / page.width, page.original_height / page.height
        objects = [replace(one, box=scaled(one.box, across, down)) for one in found_objects]
        return replace(map_boxes(reading, page), objects=tuple(objects))

    def _enlarged(self, page: OcrPage, pixels: Any, scale: float) -> Any:
        if scale == 1:
            return pixels
        image = self._image.frombytes("RGB", (page.width, page.height), page.rgb)
        size = int(page.width * scale), int(page.height * scale)
        return self._numpy.asarray(image.resize(size, self._image.Resampling.LANCZOS))

    def _upright(self, pixels: Any) -> tuple[list[TextLine], int]:
        """The text, and by how many degrees it is turned clockwise.

        Other directions are tried only if most lines stand upright or cannot be read.
        """
        lines, pieces, tall = self._try(pixels)
        if pieces < _LEAST_PIECES or (2 * tall <= pieces and 5 * len(lines) >= 3 * pieces):
            return lines, 0
        best, turned = lines, 0
        for degrees in (90, 270) if 2 * tall > pieces else (180,):
            turn = self._numpy.rot90(pixels, degrees // 90)
            other, _, still_tall = self._try(self._numpy.ascontiguousarray(turn))
            if 2 * still_tall <= len(other) and _weight(other) > 1.2 * _weight(best):
                best, turned = other, degrees
        return best, turned

    def _try(self, pixels: Any) -> tuple[list[TextLine], int, int]:
        """The credible lines, the number of all pieces, and of those higher than wide."""
        lines: list[TextLine] = []
        pieces = tall = 0
        height, width = pixels.shape[:2]
        for band in bands(width, height):
            for line in self._lines(pixels[band.start : band.stop], top=band.start):
                if not band.keep_from <= line.box.y + line.box.height / 2 < band.keep_to:
                    continue
                pieces += 1
                tall += line.box.height > 1.5 * line.box.width and len(line.text) > 1
                if is_credible(line.text, line.confidence):
                    lines.append(line)
        return lines, pieces, tall

    def _recognize(self, pixels: Any) -> str:
        """The text of one row, without looking for its place."""
        result = self._engine(self._numpy.ascontiguousarray(pixels[:, :, ::-1]), use_det=False)
        return "" if not result.txts else str(result.txts[0])

    def _lines(self, pixels: Any, *, top: int) -> Iterator[TextLine]:
        try:
            # The models were trained with blue first.
            result = self._engine(pixels[:, :, ::-1], use_det=True)
        except self._failures:
            # Their own message is a page of C++.
            raise ImageTooLarge("reading its text needs more memory than there is") from None
        if result.txts is None:
            return
        for corners, text, score in zip(result.boxes, result.txts, result.scores, strict=True):
            yield TextLine(
                text=text.strip()[:MAX_LINE_CHARS],
                box=_box(corners, top=top),
                confidence=math.floor(100 * score),
                row=0,
            )


def enlargement(width: int, height: int) -> float:
    """The factor by which OCR sees a small picture enlarged."""
    return max(1.0, min(MAX_ENLARGEMENT, math.sqrt(ENLARGED_PIXELS / max(width * height, 1))))


def _weight(lines: Iterable[TextLine]) -> int:
    return sum(len(line.text) * line.confidence for line in lines)


def _parameters() -> dict[str, Any]:
    package = find_spec("rapidocr")
    assert package is not None
    assert package.origin is not None
    models = Path(package.origin).parent / "models"
    return {
        "Global.log_level": "critical",
        # The angle classifier turns prices upside down: "$199.99" became "99661$".
        "Global.use_cls": False,
        # `measure.make_ocr_page` has already chosen the size.
        "Global.max_side_len": 1 << 20,
        # `is_credible` decides; how many pieces it rejects tells that the text is turned.
        "Global.text_score": 0.0,
        # Small pictures are enlarged to this; more costs time and gives no better text.
        "Det.limit_side_len": 320,
        "Det.model_path": str(models / "PP-OCRv6_det_small.onnx"),
        "Rec.model_path": str(models / "PP-OCRv6_rec_small.onnx"),
        "EngineConfig.onnxruntime.intra_op_num_threads": _threads(),
        "EngineConfig.onnxruntime.inter_op_num_threads": 1,
    }


def _threads() -> int:
    # Idle threads spin, so many threads on a busy machine would slow each other down.
    return max(1, min(_MAX_THREADS, (os.cpu_count() or 1) // 2))


def is_credible(text: str, confidence: int) -> bool:
    """Whether a line has enough confidence, and a letter or a digit that is more than a stroke."""
    short = len(text.strip()) <= 2
    return any(char.isalnum() and char not in _STROKES for char in text) and confidence >= (
        LEAST_CONFIDENCE_SHORT if short else LEAST_CONFIDENCE
    )


def _box(corners: Any, *, top: int) -> Box:
    left, upper = (max(0, math.floor(value)) for value in corners.min(axis=0))
    right, lower = (math.ceil(value) for value in corners.max(axis=0))
    return Box(x=left, y=upper + top, width=right - left, height=lower - upper)


class Band(msgspec.Struct, frozen=True):
    """Rows of pixels for one OCR call, and those among them whose text is kept."""

    start: int
    stop: int
    keep_from: int
    keep_to: int


def bands(width: int, height: int) -> list[Band]:
    """Divide a picture into bands that overlap; the text of each row is kept exactly once."""
    rows = max(BAND_PIXELS // max(width, 1), 2 * OVERLAP_ROWS)
    if height <= rows:
        return [Band(0, height, 0, height)]
    count = math.ceil((height - OVERLAP_ROWS) / (rows - OVERLAP_ROWS))
    starts = [round(index * (height - rows) / (count - 1)) for index in range(count)]
    # Neighbouring bands meet in the middle of their overlap.
    seams = [(start + rows + after) // 2 for start, after in pairwise(starts)]
    return [
        Band(start, start + rows, keep_from, keep_to)
        for start, keep_from, keep_to in zip(starts, [0, *seams], [*seams, height], strict=True)
    ]


def sort_into_rows(pieces: Iterable[TextLine]) -> tuple[TextLine, ...]:
    """The pieces in reading order, with their row numbers."""
    rows: list[_Row] = []
    for piece in sorted(pieces, key=lambda piece: (_middle(piece), piece.box.x)):
        row = next((row for row in rows[-3:] if _in_one_row(row.first, piece)), None)
        if row is None:
            rows.append(_Row(piece, [piece]))
        else:
            row.pieces.append(piece)
    return tuple(
        replace(piece, row=number)
        for number, row in enumerate(rows)
        for piece in sorted(row.pieces, key=lambda piece: (piece.box.x, piece.box.y))
    )


@dataclass
class _Row:
    """A row of pieces: the first one decides which others belong to it."""

    first: TextLine
    pieces: list[TextLine]


def _middle(piece: TextLine) -> float:
    return piece.box.y + piece.box.height / 2


def _in_one_row(one: TextLine, other: TextLine) -> bool:
    first, second = one.box, other.box
    top, bottom = max(first.y, second.y), min(first.y + first.height, second.y + second.height)
    return bottom - top >= _SHARED_HEIGHT * max(first.height, second.height, 1)
