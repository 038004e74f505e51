"""The places of blobs that the tests of this folder use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.servers.s3_server import S3Server, needs_s3
from tests.storage.blob_places import BlobPlace, BucketPlace, FolderPlace


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with S3Server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture(params=["folder", pytest.param("bucket", marks=needs_s3)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> BlobPlace:
    """Each place that can store blobs."""
    if request.param == "folder":
        return FolderPlace(tmp_path / "home" / "blobs")
    return BucketPlace(request.getfixturevalue("s3_server"), tmp_path / "home" / "copies")


@pytest.fixture
def bucket(s3_server: S3Server, tmp_path: Path) -> BucketPlace:
    return BucketPlace(s3_server, tmp_path / "home" / "copies")
