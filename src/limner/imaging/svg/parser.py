"""SVG text -> a tree of allowed elements, or an error at the first thing that is not allowed."""

from __future__ import annotations

from collections.abc import Iterator
from xml.parsers import expat

import msgspec

from limner.errors import CorruptImage, ImageTooLarge, UnsafeSvg
from limner.imaging.limits import WorkerLimits
from limner.imaging.svg import rules

SVG_NAMESPACE = "http://www.w3.org/2000/svg"
XLINK_NAMESPACE = "http://www.w3.org/1999/xlink"
_XML_NAMESPACE = "http://www.w3.org/XML/1998/namespace"


# xml.sax.saxutils does the same, but it imports an HTTP client.
_ESCAPES = str.maketrans(
    {
        "&": "&amp;",
        "<": "&lt;",
        ">": "&gt;",
        '"': "&quot;",
        "\n": "&#10;",
        "\t": "&#9;",
        "\r": "&#13;",
    }
)


class Element(msgspec.Struct):
    """One element: its tag without namespace, its attributes, its children and text in order."""

    tag: str
    attributes: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    children: list[Element | str] = msgspec.field(default_factory=list["Element | str"])

    def elements(self) -> Iterator[Element]:
        """This element and all below it, in document order."""
        stack = [self]
        while stack:
            element = stack.pop()
            yield element
            stack += [child for child in reversed(element.children) if isinstance(child, Element)]

    def to_text(self) -> str:
        """The element as SVG text."""
        parts: list[str] = []
        self._write(parts)
        return "".join(parts)

    def _write(self, parts: list[str]) -> None:
        attributes = "".join(f' {name}="{_escape(text)}"' for name, text in self.attributes.items())
        parts.append(f"<{self.tag}{attributes}>")
        for child in self.children:
            if isinstance(child, Element):
                child._write(parts)
            else:
                parts.append(_escape(child))
        parts.append(f"</{self.tag}>")


def _escape(text: str) -> str:
    return text.translate(_ESCAPES)


def parse(document: str, limits: WorkerLimits) -> Element:
    """Parse a document whose root is ``svg``, and keep what may be drawn.

    Raises:
        UnsafeSvg: it contains something that is not allowed.
        ImageTooLarge: too many elements.
        CorruptImage: it is not well-formed XML, or not SVG.
    """
    builder = _TreeBuilder(limits)
    parser = expat.ParserCreate("utf-8", namespace_separator=" ")
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = _refuse_doctype
    parser.ProcessingInstructionHandler = _refuse_instruction
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.text
    try:
        parser.Parse(document.encode(), True)
    except expat.ExpatError as error:
        raise CorruptImage(f"the SVG document is not well-formed: {error}") from None
    # Expat rejects a document without a root, and the builder one whose root is not svg.
    assert builder.root is not None
    return builder.root


def _refuse_doctype(*_: object) -> None:
    raise UnsafeSvg("remove <!DOCTYPE>: a drawing declares no document type and no entities")


def _refuse_instruction(target: str, _: str) -> None:
    raise UnsafeSvg(f"remove <?{target}?>: a drawing has no processing instructions")


class _TreeBuilder:
    """Builds the tree while expat parses, so that a limit stops the parsing itself."""

    def __init__(self, limits: WorkerLimits) -> None:
        self.root: Element | None = None
        self._limits = limits
        self._open: list[Element] = []
        self._dropped_depth = 0
        self._count = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Add an element, drop it, or raise an error."""
        self._count += 1
        if self._count > self._limits.max_svg_elements:
            raise ImageTooLarge(f"more than {self._limits.max_svg_elements:,} elements")
        if len(self._open) + self._dropped_depth >= self._limits.max_svg_depth:
            raise ImageTooLarge(f"elements nest more than {self._limits.max_svg_depth} deep")
        namespace, tag = _split(name)
        if self.root is None:
            _check_root(namespace, tag)
        # Editors keep their own data in other namespaces; a renderer ignores it too.
        if self._dropped_depth or namespace not in {"", SVG_NAMESPACE} or not rules.is_drawn(tag):
            self._dropped_depth += 1
            return
        given = dict(filter(None, map(_plain_name, attributes.items())))
        element = Element(tag, rules.kept_attributes(tag, given))
        if self._open:
            self._open[-1].children.append(element)
        else:
            self.root = element
        self._open.append(element)

    def end(self, _: str) -> None:
        """Close the innermost element."""
        if self._dropped_depth:
            self._dropped_depth -= 1
            return
        element = self._open.pop()
        if element.tag == "style":
            css = "".join(child for child in element.children if isinstance(child, str))
            css = rules.without_embedded_fonts(css)
            rules.check_css(css, where="<style>")
            element.children = [css]

    def text(self, text: str) -> None:
        """Keep text if its element is drawn."""
        if not self._dropped_depth and self._open[-1].tag in rules.TEXT_HOLDERS:
            self._open[-1].children.append(text)


def _check_root(namespace: str, tag: str) -> None:
    if tag != "svg":
        raise CorruptImage(f"the root element is <{tag}>, not <svg>")
    if namespace not in {"", SVG_NAMESPACE}:
        raise CorruptImage(
            f"the root element <svg> is of the namespace {namespace!r}, not of {SVG_NAMESPACE!r}"
        )


def _split(name: str) -> tuple[str, str]:
    namespace, _, local = name.rpartition(" ")
    return namespace, local


def _plain_name(attribute: tuple[str, str]) -> tuple[str, str] | None:
    """The attribute under the name that the rules use; None for one of an editor."""
    name, value = attribute
    namespace, local = _split(name)
    if namespace == "" or (namespace == XLINK_NAMESPACE and local == "href"):
        return local, value
    return (f"xml:{local}", value) if namespace == _XML_NAMESPACE else None
