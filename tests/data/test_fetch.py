"""Downloads against a server on this machine, with small files in the place of the originals."""

import functools
import gzip
import hashlib
import io
import tarfile
import threading
from dataclasses import replace
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from offtangent import data
from offtangent._errors import InputError
from offtangent.data import fetch
from offtangent.data.catalogue import FILES, data_folder, locate, read


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture
def server(tmp_path, monkeypatch):
    """(folder that is served, its address)."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    folder = tmp_path / "served"
    folder.mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder)) as http:
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield folder, f"http://127.0.0.1:{http.server_port}/"
        http.shutdown()
        thread.join()


@pytest.fixture
def mnist_server(server, fake_mnist, monkeypatch):
    """The server with a small MNIST, its checksums and its address in the place of the originals'."""
    served, address = server
    originals = []
    for original, file in zip(fetch.ORIGINALS["mnist"], FILES["mnist"], strict=True):
        content = read(locate("mnist", file, fake_mnist))
        name = original.mirrors[0].rpartition("/")[2]
        (served / name).write_bytes(gzip.compress(content, mtime=0))
        originals.append(replace(original, md5=hashlib.md5(content).hexdigest(), mirrors=(address + name,)))
    monkeypatch.setitem(fetch.ORIGINALS, "mnist", tuple(originals))
    return served, address


def contents(folder):
    return [path for path in folder.rglob("*") if path.is_file()] if folder.exists() else []


@pytest.mark.usefixtures("mnist_server")
def test_a_download_is_what_was_published(fake_mnist, tmp_path):
    target = tmp_path / "target"
    assert not data.fetch.available("mnist", target)
    assert data.download("mnist", target) == target
    assert data.fetch.available("mnist", target)
    assert data.fetch.checksum("mnist", target) == data.fetch.checksum("mnist", fake_mnist)
    assert len(contents(target)) == 4


@pytest.mark.usefixtures("mnist_server")
def test_loading_with_download_fetches_what_is_missing(tmp_path):
    X, _ = data.mnist(folder=tmp_path / "target", download=True)
    assert X.shape == (30, 6)


def test_a_wrong_checksum_is_refused_and_nothing_is_left_behind(mnist_server, tmp_path):
    served, address = mnist_server
    (served / "t10k-labels-idx1-ubyte.gz").write_bytes(gzip.compress(b"something else", mtime=0))
    with pytest.raises(InputError, match=r"t10k-labels-idx1-ubyte.gz: its md5 is [0-9a-f]{32}, expected") as refused:
        data.download("mnist", tmp_path / "target")
    assert address in str(refused.value)
    assert contents(tmp_path / "target") == []


def test_a_file_that_is_no_gzip_is_refused(mnist_server, tmp_path):
    served, _ = mnist_server
    (served / "t10k-labels-idx1-ubyte.gz").write_bytes(b"<html>not found</html>")
    with pytest.raises(InputError, match="Not a gzipped file"):
        data.download("mnist", tmp_path / "target")


@pytest.mark.parametrize("dead", ["missing/", "http://127.0.0.1:1/"])
def test_when_the_first_mirror_is_dead_the_second_is_used(mnist_server, tmp_path, monkeypatch, dead):
    _, address = mnist_server
    first = dead if dead.startswith("http") else address + dead
    originals = [replace(o, mirrors=(first + o.file, *o.mirrors)) for o in fetch.ORIGINALS["mnist"]]
    monkeypatch.setitem(fetch.ORIGINALS, "mnist", tuple(originals))
    data.download("mnist", tmp_path / "target")
    assert data.fetch.available("mnist", tmp_path / "target")


def test_without_a_network_every_mirror_and_the_folder_are_named(tmp_path, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    mirrors = ("http://127.0.0.1:1/a.gz", "http://127.0.0.1:1/b.gz")
    originals = [replace(o, mirrors=mirrors) for o in fetch.ORIGINALS["mnist"]]
    monkeypatch.setitem(fetch.ORIGINALS, "mnist", tuple(originals))
    with pytest.raises(InputError, match="Is there a network") as refused:
        data.download("mnist", tmp_path)
    for part in (*mirrors, str(tmp_path), "mnist/train-images-idx3-ubyte"):
        assert part in str(refused.value)


def test_progress_ends_with_all_bytes_of_each_file(mnist_server, tmp_path):
    served, _ = mnist_server
    last = {}
    data.download("mnist", tmp_path / "target", progress=lambda file, *bytes_: last.update({file: bytes_}))
    assert len(last) == 4
    for file, (done, total) in last.items():
        assert done == total == (served / file.removeprefix("mnist/")).stat().st_size


@pytest.mark.usefixtures("mnist_server")
def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "target").write_text("a file where a folder should be")
    with pytest.raises(InputError, match="Cannot write"):
        data.download("mnist", tmp_path / "target")


def cifar_archive(server, monkeypatch, members):
    served, address = server
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    (served / "cifar.tar.gz").write_bytes(packed.getvalue())
    (original,) = fetch.ORIGINALS["cifar10"]
    md5 = hashlib.md5(packed.getvalue()).hexdigest()
    monkeypatch.setitem(fetch.ORIGINALS, "cifar10", (replace(original, md5=md5, mirrors=(address + "cifar.tar.gz",)),))


def test_only_the_expected_members_leave_the_archive(server, fake_cifar, tmp_path, monkeypatch):
    names = {file.removeprefix("cifar10/"): (fake_cifar / file).read_bytes() for file in FILES["cifar10"]}
    evil = {"../evil.bin": b"x", "/tmp/evil.bin": b"x", "cifar-10-batches-bin/readme.html": b"x"}
    cifar_archive(server, monkeypatch, evil | names)
    target = tmp_path / "deep" / "target"
    data.download("cifar10", target)
    assert sorted(path.relative_to(target).as_posix() for path in contents(target)) == sorted(FILES["cifar10"])
    assert contents(tmp_path / "deep") == contents(target)
    assert data.fetch.checksum("cifar10", target) == data.fetch.checksum("cifar10", fake_cifar)


def test_an_archive_without_a_batch_is_refused(server, tmp_path, monkeypatch):
    cifar_archive(server, monkeypatch, {"cifar-10-batches-bin/test_batch.bin": b"x"})
    with pytest.raises(InputError, match=r"does not hold .*data_batch_1.bin"):
        data.download("cifar10", tmp_path / "target")
    assert contents(tmp_path / "target") == []


def test_digits_are_always_here_and_need_no_download():
    assert data.fetch.available("digits")
    assert data.fetch.checksum("digits") == data.fetch.checksum("digits")
    with pytest.raises(InputError, match="ships with scikit-learn"):
        data.download("digits")


@pytest.mark.parametrize("ask", [data.fetch.available, data.fetch.checksum, data.download])
def test_an_unknown_name_is_refused_with_the_known_ones(ask):
    with pytest.raises(InputError, match="digits, mnist, cifar10"):
        ask("imagenet")


def test_a_checksum_does_not_depend_on_compression_and_follows_a_change(fake_mnist):
    before = data.fetch.checksum("mnist", fake_mnist)
    packed = fake_mnist / "mnist" / "train-images-idx3-ubyte.gz"
    content = gzip.decompress(packed.read_bytes())
    packed.unlink()
    plain = fake_mnist / "mnist" / "train-images-idx3-ubyte"
    plain.write_bytes(content)
    assert data.fetch.checksum("mnist", fake_mnist) == before
    plain.write_bytes(content + b"!")
    assert data.fetch.checksum("mnist", fake_mnist) != before


def test_a_checksum_reads_the_files_only_once(fake_mnist, monkeypatch):
    before = data.fetch.checksum("mnist", fake_mnist)
    monkeypatch.setattr(fetch, "read", lambda _: pytest.fail("read again"))
    assert data.fetch.checksum("mnist", fake_mnist) == before


def test_originals_come_over_https():
    assert all(url.startswith("https://") for of in fetch.ORIGINALS.values() for o in of for url in o.mirrors)


@pytest.mark.skipif(not data.fetch.available("mnist"), reason="no MNIST in $OFFTANGENT_DATA")
def test_the_mnist_files_here_have_the_published_md5():
    for original, file in zip(fetch.ORIGINALS["mnist"], FILES["mnist"], strict=True):
        assert hashlib.md5(read(locate("mnist", file, data_folder()))).hexdigest() == original.md5
