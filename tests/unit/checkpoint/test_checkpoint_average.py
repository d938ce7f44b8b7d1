"""The mean of checkpoints, by hand."""

import numpy as np
import pytest

from headway.checkpoint.average import average_weights
from headway.errors import CheckpointError, FolderError
from headway.folder.weights import write_weights


def written(folder, name, **arrays):
    path = folder / f"{name}.safetensors"
    write_weights(path, {key: np.asarray(value, dtype=np.float32) for key, value in arrays.items()})
    return path


def test_the_mean_of_three_by_hand(tmp_path):
    paths = [
        written(tmp_path, "one", a=[[1.0, 2.0]], b=[0.0]),
        written(tmp_path, "two", a=[[4.0, 8.0]], b=[1.0]),
        written(tmp_path, "three", a=[[7.0, -4.0]], b=[0.0]),
    ]
    mean = average_weights(paths)
    assert mean["a"].tolist() == [[4.0, 2.0]]
    assert mean["b"].tolist() == [np.float32(1 / 3)]
    assert {array.dtype for array in mean.values()} == {np.dtype(np.float32)}


def test_the_mean_of_one_is_itself_to_the_bit(tmp_path):
    values = np.random.default_rng(3).standard_normal((5, 7)).astype(np.float32)
    mean = average_weights([written(tmp_path, "one", a=values)])
    assert mean["a"].tobytes() == values.tobytes()


def test_small_differences_of_large_weights_are_not_lost(tmp_path):
    """In float32 the sum 2^24 + 1 + 1 would stay 2^24."""
    paths = [written(tmp_path, str(number), a=[value]) for number, value in enumerate([2.0**24, 1.0, 1.0, 2.0**24])]
    assert average_weights(paths)["a"].tolist() == [np.float32((2**25 + 2) / 4)]


def test_the_order_of_files_does_not_matter(tmp_path):
    random = np.random.default_rng(5)
    paths = [written(tmp_path, str(number), a=random.standard_normal(101)) for number in range(3)]
    assert average_weights(paths)["a"].tobytes() == average_weights(paths[::-1])["a"].tobytes()


@pytest.mark.parametrize("other", [{"b": [[1.0, 2.0]]}, {"a": [[1.0]]}, {"a": [[1.0, 2.0]], "b": [1.0]}])
def test_weights_of_unlike_models_are_refused(tmp_path, other):
    paths = [written(tmp_path, "one", a=[[1.0, 2.0]]), written(tmp_path, "two", **other)]
    with pytest.raises(CheckpointError, match="not of one model"):
        average_weights(paths)


def test_nothing_to_average_is_an_error():
    with pytest.raises(CheckpointError, match="no weights"):
        average_weights([])


def test_a_damaged_file_is_not_averaged(tmp_path):
    paths = [written(tmp_path, "one", a=[1.0, 2.0]), written(tmp_path, "two", a=[3.0, 4.0])]
    paths[1].write_bytes(paths[1].read_bytes()[:-3])
    with pytest.raises(FolderError, match=r"two\.safetensors"):
        average_weights(paths)
