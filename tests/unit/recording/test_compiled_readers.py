"""Files that compiled code opens by itself are data too; each row of the table is tried with its library."""

from __future__ import annotations

import importlib
import pickle
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.numpy import save_file

from samebits.recording.probes.compiled_readers import READERS, Reader

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from samebits.recording.probes.data_files import DataFilesProbe


for _reader in READERS:  # outside of the tests: some of them set environment variables
    with suppress(ImportError):
        importlib.import_module(_reader.module)


def library(name: str) -> Any:
    """Return a module; not all that the table knows have to be installed."""
    return pytest.importorskip(name)


def read_by(probe: DataFilesProbe, path: Path) -> bool:
    """Tell whether a file is among the data."""
    return str(path) in probe.paths()


def weights(path: Path) -> None:
    save_file({"w": np.arange(8, dtype=np.float32)}, path)


def picture(path: Path) -> None:
    library("cv2").imwrite(str(path), np.zeros((16, 16, 3), np.uint8))


def film(path: Path) -> None:
    cv2 = library("cv2")
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter_fourcc(*"MJPG"), 5, (64, 64))
    for brightness in range(5):
        writer.write(np.full((64, 64, 3), brightness * 20, np.uint8))
    writer.release()


def sound(path: Path) -> None:
    import wave

    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(bytes(1600))


def table(format_: str) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        made = library("pyarrow").table({"x": [1, 2, 3]})
        if format_ == "ipc":
            with library("pyarrow").ipc.new_file(str(path), made.schema) as writer:
                writer.write_table(made)
        else:
            writers = {"parquet": "write_table", "orc": "write_table", "feather": "write_feather"}
            getattr(library(f"pyarrow.{format_}"), writers[format_])(made, str(path))

    return make


def text(contents: str) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        path.write_text(contents)

    return make


def numbers(path: Path) -> None:
    with library("h5py").File(path, "w") as file:
        file["x"] = [1, 2]


def tokens(path: Path) -> None:
    tokenizers = library("tokenizers")
    tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0}, "a")).save(str(path))


def pieces(path: Path) -> None:
    sentencepiece = library("sentencepiece")
    lines = [f"some words of line {number} here" for number in range(200)]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_prefix=str(path.with_suffix("")), vocab_size=30, minloglevel=2
    )
    path.with_suffix(".model").rename(path)


def program(path: Path) -> None:
    torch.jit.script(torch.nn.Linear(2, 1)).save(str(path))


def volume(path: Path) -> None:
    sitk = library("SimpleITK")
    sitk.WriteImage(sitk.GetImageFromArray(np.zeros((4, 4, 4), np.float32)), str(path))


def pairs(path: Path) -> None:
    with library("lmdb").open(str(path), subdir=False) as base, base.begin(write=True) as writing:
        writing.put(b"a", b"1")


def first_pair(lmdb: Any, path: str) -> None:
    with lmdb.open(path, subdir=False, readonly=True) as base, base.begin() as reading:
        assert reading.get(b"a") == b"1"


CALLS: dict[tuple[str, str], tuple[str, Callable[[Path], None], Callable[[Any, str], Any]]] = {
    ("av", "open"): (".avi", film, lambda av, path: av.open(path).close()),
    ("cv2", "FileStorage.__init__"): (
        ".yml", text("%YAML:1.0\nx: 1\n"),
        lambda cv2, path: cv2.FileStorage(path, cv2.FILE_STORAGE_READ).release()
    ),
    ("cv2", "VideoCapture.__init__"): (".avi", film, lambda cv2, path: cv2.VideoCapture(path).release()),
    ("cv2", "imread"): (".png", picture, lambda cv2, path: cv2.imread(path)),
    ("cv2", "imreadmulti"): (".png", picture, lambda cv2, path: cv2.imreadmulti(filename=path)),
    ("decord", "AudioReader.__init__"): (".wav", sound, lambda decord, path: len(decord.AudioReader(path))),
    ("decord", "VideoReader.__init__"): (".avi", film, lambda decord, path: len(decord.VideoReader(path))),
    ("h5py", "File.__init__"): (".h5", numbers, lambda h5py, path: h5py.File(path).close()),
    ("lmdb", "Environment.begin"): (".mdb", pairs, first_pair),
    ("netCDF4", "Dataset.__init__"): (".h5", numbers, lambda netcdf, path: netcdf.Dataset(path).close()),
    ("polars", "read_csv"): (".csv", text("x\n1\n"), lambda polars, path: polars.read_csv(path)),
    ("polars", "read_ipc"): (".arrow", table("ipc"), lambda polars, path: polars.read_ipc(path)),
    ("polars", "read_parquet"): (
        ".parquet", table("parquet"), lambda polars, path: polars.read_parquet(path)
    ),
    ("polars", "scan_csv"): (".csv", text("x\n1\n"), lambda polars, path: polars.scan_csv(path).collect()),
    ("polars", "scan_ipc"): (".arrow", table("ipc"), lambda polars, path: polars.scan_ipc(path).collect()),
    ("polars", "scan_ndjson"): (
        ".jsonl", text('{"x": 1}\n'), lambda polars, path: polars.scan_ndjson(path).collect()
    ),
    ("polars", "scan_parquet"): (
        ".parquet", table("parquet"), lambda polars, path: polars.scan_parquet(path).collect()
    ),
    ("pyarrow", "memory_map"): (".arrow", table("ipc"), lambda pa, path: pa.memory_map(path).close()),
    ("pyarrow.csv", "read_csv"): (".csv", text("x\n1\n"), lambda csv, path: csv.read_csv(path)),
    ("pyarrow.dataset", "dataset"): (
        ".parquet", table("parquet"), lambda dataset, path: dataset.dataset(path).to_table()
    ),
    ("pyarrow.feather", "read_table"): (
        ".feather", table("feather"), lambda feather, path: feather.read_table(path)
    ),
    ("pyarrow.json", "read_json"): (".json", text('{"x": 1}\n'), lambda json, path: json.read_json(path)),
    ("pyarrow.orc", "ORCFile.__init__"): (".orc", table("orc"), lambda orc, path: orc.ORCFile(path).read()),
    ("pyarrow.parquet", "ParquetDataset.__init__"): (
        ".parquet", table("parquet"), lambda parquet, path: parquet.read_table(path)
    ),
    ("pyarrow.parquet", "ParquetFile.__init__"): (
        ".parquet", table("parquet"), lambda parquet, path: parquet.ParquetFile(path).read()
    ),
    ("safetensors", "safe_open.__init__"): (
        ".safetensors", weights, lambda module, path: module.safe_open(path, framework="np").keys()
    ),
    ("sentencepiece", "SentencePieceProcessor.LoadFromFile"): (
        ".sp", pieces, lambda module, path: module.SentencePieceProcessor(model_file=path)
    ),
    ("SimpleITK", "ReadImage"): (".mha", volume, lambda sitk, path: sitk.ReadImage(path)),
    ("soundfile", "SoundFile.__init__"): (".wav", sound, lambda soundfile, path: soundfile.read(path)),
    ("tokenizers", "Tokenizer.from_file"): (
        ".json", tokens, lambda module, path: module.Tokenizer.from_file(path)
    ),
    ("torch", "UntypedStorage.from_file"): (
        ".bin", text("12345678"), lambda torch, path: torch.UntypedStorage.from_file(path, False, 8)
    ),
    ("torch", "from_file"): (".bin", text("12345678"), lambda torch, path: torch.from_file(path, False, 2)),
    ("torch", "jit.load"): (".pt", program, lambda torch, path: torch.jit.load(path)),
}  # fmt: skip
"""For each row: the ending of a name, what makes such a file, and a call that reads it."""


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: f"{reader.module}.{reader.name}")
def test_a_file_that_the_function_reads_is_data(
    reader: Reader, watch: Callable[[], DataFilesProbe], tmp_path: Path
) -> None:
    ending, make, call = CALLS[reader.module, reader.name]
    module = library(reader.module)
    path = tmp_path / f"data{ending}"
    make(path)

    probe = watch()
    call(module, str(path))

    assert read_by(probe, path)


def test_a_class_stays_what_it_is(watch: Callable[[], DataFilesProbe], tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    weights(path)
    before = dict(vars(safe_open))

    probe = watch()
    with safe_open(path, framework="np") as file:
        assert type(file) is safe_open
        assert isinstance(file, safe_open)
        assert file.get_tensor("w").tolist() == list(range(8))
    with pytest.raises(FileNotFoundError) as missing:
        safe_open(tmp_path / "none", framework="np")
    with pytest.raises(TypeError, match="framework"):
        safe_open(path)
    probe.remove()

    assert len(missing.traceback) == 1
    assert dict(vars(safe_open)) == before
    assert safe_open(path, framework="np").keys() == ["w"]


def test_functions_stay_what_they_are(watch: Callable[[], DataFilesProbe], tmp_path: Path) -> None:
    (tmp_path / "numbers").write_bytes(bytes(8))
    originals = torch.from_file, torch.jit.load, torch.UntypedStorage.from_file
    probe = watch()
    assert pickle.loads(pickle.dumps(torch.from_file)) == torch.from_file
    assert pickle.loads(pickle.dumps(torch.jit.load)) is torch.jit.load
    assert torch.from_file.__name__ == "from_file"
    assert torch.from_file == originals[0]
    assert len(torch.UntypedStorage.from_file(str(tmp_path / "numbers"), False, 8)) == 8
    with pytest.raises(ValueError, match="does not exist") as error:
        torch.jit.load(str(tmp_path / "none"))
    assert [entry.name for entry in error.traceback][1:] == ["load"]
    probe.remove()

    assert (torch.from_file, torch.jit.load, torch.UntypedStorage.from_file) == originals
    assert "from_file" not in vars(torch.UntypedStorage)


def test_what_the_run_itself_wrote_is_no_data(watch: Callable[[], DataFilesProbe], tmp_path: Path) -> None:
    """Compiled code writes it, without an audit event."""
    path = tmp_path / "w.safetensors"

    probe = watch()
    time.sleep(0.02)  # the clock of the file system may be a tick behind
    weights(path)
    safe_open(path, framework="np").keys()

    assert not read_by(probe, path)


def test_a_file_that_is_opened_to_write_is_no_data(
    watch: Callable[[], DataFilesProbe], tmp_path: Path
) -> None:
    path = tmp_path / "x.arrow"
    path.write_bytes(b"1")
    arrow = library("pyarrow")

    probe = watch()
    arrow.memory_map(str(path), "w").close()

    assert not read_by(probe, path)


def test_a_folder_stands_for_the_files_below_it(watch: Callable[[], DataFilesProbe], tmp_path: Path) -> None:
    dataset = library("pyarrow.dataset")
    path = tmp_path / "set" / "part" / "x.parquet"
    path.parent.mkdir(parents=True)
    table("parquet")(path)

    probe = watch()
    dataset.dataset(str(tmp_path / "set")).to_table()

    assert read_by(probe, path)


def test_every_row_names_something_that_is_there() -> None:
    """A name that its library has not would be watched in vain."""
    for reader in READERS:
        try:
            found: Any = importlib.import_module(reader.module)
        except ImportError:
            continue
        for part in reader.name.split("."):
            found = getattr(found, part)
