"""Dask collections: fits where their blocks are, and predictions that stay lazy.

The only file that imports Dask, and it is imported when a Dask collection is given.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics import mean_tweedie_deviance

try:
    import dask
    import dask.array
    import dask.dataframe
    import distributed
    from dask.dataframe.dispatch import concat
    from dask.delayed import Delayed
except ImportError as error:
    raise ImportError(
        "Dask collections need Dask's arrays, dataframes and scheduler: "
        "pip install 'sklearn-subqn[dask]'."
    ) from error

from ._blocks import Block, Collection, copy_for_blocks
from ._core.places import Answer, Here, Message, Place, PlaceLost, Session

# Of futures whose workers or scheduler are gone.
_CANCELLED = (
    distributed.CancelledError,
    distributed.client.FutureCancelledError,
    distributed.scheduler.KilledWorker,
)

# Answers are waited for so many seconds at a time, in which the scheduler may go.
_GLANCE = 0.5

# Workers are asked whether they live where an answer takes so many seconds, and are
# lost when their last sign of life is so many seconds old. Blocks of lost workers are
# waited for as long as the last number says, and looked for in such intervals.
_PATIENCE, _SILENCE = 5.0, 20.0
_REPLACEMENT, _INTERVAL = 30.0, 0.2

# Blocks come to one worker where X takes at most this share of its memory, which will
# also have a copy in one piece, and perhaps one in other units. With more bytes than
# the second number products of dense blocks take longer than messages to two workers:
# 16 million entries take 25 ms, as do ten messages.
_SHARE_OF_MEMORY, _FEW_BYTES = 0.125, 2**27


class PlaceOfBlocks(Place):
    """The blocks of a worker; those without rows are left out.

    Parameters
    ----------
    X, y, weights : list
        One entry for each block; weights may be None.
    is_all : bool
        Whether these are all blocks, which then are put together.
    """

    def __init__(
        self,
        X: list[Any],
        y: list[Any],
        weights: list[Any],
        *,
        is_all: bool = False,
    ) -> None:
        blocks = [each for each in zip(X, y, weights, strict=True) if each[0].shape[0]]
        if is_all and len(blocks) > 1 and _fit_together(blocks):
            blocks = [_together(*zip(*blocks, strict=True))]
        super().__init__(Block(*each) for each in blocks)


def _fit_together(blocks: list[Any]) -> bool:
    """Whether blocks may be put together; errors are found in them one by one."""
    kinds = {
        (tuple(getattr(X, "columns", range(X.shape[1]))), sparse.issparse(X))
        for X, *_ in blocks
        if X.ndim == 2
    }
    return len(kinds) == 1 and all(
        each is None or len(each) == X.shape[0]
        for X, *others in blocks
        for each in others
    )


def _together(X: Any, y: Any, weights: Any) -> tuple[Any, Any, Any]:
    """Return the rows of several blocks, of y and of weights, in one of each."""
    if sparse.issparse(X[0]):
        rows = sparse.vstack(X, format="csr")
    else:
        rows = concat(X) if hasattr(X[0], "columns") else np.concatenate(X)
    others = [
        None if each[0] is None else np.concatenate(list(map(np.asarray, each)))
        for each in (y, weights)
    ]
    return rows, *others


class _Worker:
    """The way to a place on a worker.

    Parameters
    ----------
    client : distributed.Client
    future : distributed.Future
        Of the place, an actor.
    address : str
    lost : set of str
        Addresses of lost workers, to which this one may be added.
    """

    def __init__(self, client: Any, future: Any, address: str, lost: set[str]) -> None:
        self._client, self._future, self._address = client, future, address
        self._lost = lost
        self._place: Any = None

    def open(self) -> int:
        """Wait for the place; return how many blocks it holds."""
        self._place = self._awaited(self._future.result)
        return int(self._awaited(self._call("n_parts")))

    def close(self) -> None:
        """Release the place."""
        # Dask's handles of actors are in cycles, and would keep it for a while.
        if self._client.status == "running":
            self._client.cancel([self._future])
        self._place = None

    def send(self, message: Message) -> Callable[[], Answer]:
        """Send a message; return what waits for the answer."""
        call = self._call("answer", message)
        return lambda: self._awaited(call)

    def _call(self, name: str, *args: Any) -> Callable[..., Any]:
        try:
            method = getattr(self._place, name)
        except RuntimeError as error:
            # By Dask, of actors of workers that it knows to be lost.
            raise self._loss() from error
        result: Callable[..., Any] = method(*args).result
        return result

    def _awaited(self, result: Callable[..., Any]) -> Any:
        asked = time.monotonic()
        while True:
            try:
                return result(timeout=_GLANCE)
            except TimeoutError:
                _check(self._client)
                if time.monotonic() - asked < _PATIENCE:
                    continue
                asked = time.monotonic()
                if _is_silent(_seen(self._client), self._address):
                    raise self._loss() from None
            except (OSError, *_CANCELLED) as error:
                raise self._loss() from error

    def _loss(self) -> PlaceLost:
        self._lost.add(self._address)
        return _loss_of(self._address)


def _loss_of(address: str) -> PlaceLost:
    return PlaceLost(
        f"The worker {address} was lost or does not answer. See its log; where its "
        "memory was too small for its blocks, take more workers, or smaller blocks."
    )


def _seen(client: Any) -> dict[str, float]:
    """Return when the scheduler last heard of each worker."""
    _check(client)
    try:
        seen: dict[str, float] = client.run_on_scheduler(_last_seen)
    except Exception as error:
        raise _without_scheduler() from error
    return seen


def _is_silent(seen: dict[str, float], address: str) -> bool:
    return time.time() - seen.get(address, 0.0) > _SILENCE


def _check(client: Any) -> None:
    """Raise ConnectionError where a client has lost its scheduler, with all results."""
    if client.status != "running":
        raise _without_scheduler()


def _without_scheduler() -> ConnectionError:
    return ConnectionError("Dask's scheduler cannot be reached.")


def _last_seen(dask_scheduler: Any) -> dict[str, float]:
    return {name: each.last_seen for name, each in dask_scheduler.workers.items()}


def _sizes(keys: list[Any], address: str, dask_scheduler: Any) -> tuple[int, int]:
    """Return the bytes of results, and the memory of a worker, zero if unlimited."""
    worker = dask_scheduler.workers.get(address)
    tasks = dask_scheduler.tasks
    sizes = [tasks[key].nbytes for key in keys if key in tasks]
    return sum(sizes), (worker.memory_limit or 0) if worker else 0


class _Blocks:
    """Where the blocks of collections come from.

    Parameters
    ----------
    X, y, weights : list of Delayed
        One for each block; weights may be None.
    client : distributed.Client or None
        Without one the blocks come to this process, one after the other.
    collections : list
        What the blocks are of, kept as long as these are needed.
    """

    holds_rows = True

    def __init__(
        self,
        X: list[Any],
        y: list[Any],
        weights: list[Any],
        client: Any,
        collections: list[Any],
    ) -> None:
        self._blocks, self._client = (X, y, weights), client
        self._collections = collections
        self._workers: list[_Worker] = []
        self._lost: set[str] = set()
        self._futures: list[Any] = []

    def open(self) -> Session:
        """Return a session whose parts are the blocks with rows."""
        if self._client is None:
            blocks = [dask.compute(*each) for each in zip(*self._blocks, strict=True)]
            place = PlaceOfBlocks(*map(list, zip(*blocks, strict=True)))
            return _session([Here(place)], [place.n_parts()], early=False)
        end = time.monotonic() + _REPLACEMENT
        while True:
            try:
                return self._opened()
            except PlaceLost:
                self._release()
                # Blocks of a silent worker that Dask counts on are not computed anew;
                # that a worker has ended it knows a moment later.
                seen = _seen(self._client)
                known = self._lost & seen.keys()
                silent = any(_is_silent(seen, address) for address in known)
                if silent or time.monotonic() > end:
                    raise
                time.sleep(_INTERVAL)

    def close(self) -> None:
        """Release all that is held on workers."""
        self._release()
        # Tracebacks of errors may refer to futures and lists for long.
        if self._client is not None:
            for future in (*self._futures, *distributed.futures_of(self._collections)):
                future.release()
        for each in (*self._blocks, self._futures, self._collections):
            each.clear()

    def _release(self) -> None:
        for worker in self._workers:
            worker.close()
        self._workers = []

    def _opened(self) -> Session:
        self._release()
        self._place()
        numbers = [worker.open() for worker in self._workers]
        used = [(w, n) for w, n in zip(self._workers, numbers, strict=True) if n]
        # Calls of a run in one place have to be made when they are asked for.
        early = sum(numbers) > 1
        return _session([w for w, _ in used], [n for _, n in used], early=early)

    def _place(self) -> None:
        """Begin places on the workers where the blocks of X are."""
        weights, n = self._blocks[2], len(self._blocks[0])
        futures = self._computed()
        where = self._client.who_has(futures[:n])
        alive = _seen(self._client).keys() - self._lost
        own: dict[str, list[int]] = {}
        for i, future in enumerate(futures[:n]):
            holders = where.get(future.key, ())
            answering = [address for address in holders if address in alive]
            if not answering:
                raise _loss_of(", ".join(holders or sorted(self._lost)))
            address = min(answering, key=lambda a: len(own.get(a, ())))
            own.setdefault(address, []).append(i)
        most = max(own, key=lambda address: len(own[address]))
        is_all = self._fits(futures[:n], most)
        if is_all:
            own = {most: list(range(n))}
        for address, numbers in own.items():
            place = self._client.submit(
                PlaceOfBlocks,
                [futures[i] for i in numbers],
                [futures[n + i] for i in numbers],
                [None if weights[i] is None else futures[2 * n + i] for i in numbers],
                is_all=is_all,
                actor=True,
                workers=[address],
                allow_other_workers=False,
                pure=False,
            )
            self._workers.append(_Worker(self._client, place, address, self._lost))

    def _fits(self, X: list[Any], address: str) -> bool:
        """Whether the blocks of X come to one worker."""
        keys = [future.key for future in X]
        n_bytes, memory = self._client.run_on_scheduler(_sizes, keys, address)
        if n_bytes <= _FEW_BYTES:
            return bool(n_bytes <= _SHARE_OF_MEMORY * (memory or np.inf))
        if n_bytes > _SHARE_OF_MEMORY * memory:
            return False
        kind = self._client.submit(sparse.issparse, X[0], pure=False)
        try:
            return bool(kind.result())
        except (OSError, *_CANCELLED):
            # What is lost is found when places begin.
            return False

    def _computed(self) -> list[Any]:
        """Return futures of blocks once these are computed; raise their errors."""
        _check(self._client)
        before = list(self._futures)
        self._futures[:] = self._client.compute(
            [each for some in self._blocks for each in some if each is not None]
        )
        # Tracebacks of what was lost may refer to these for long.
        for future in before:
            future.release()
        futures = self._futures
        end = time.monotonic() + _REPLACEMENT
        while True:
            try:
                distributed.wait(futures, timeout=_GLANCE)
                break
            except TimeoutError:
                if _seen(self._client):
                    end = time.monotonic() + _REPLACEMENT
                elif time.monotonic() > end:
                    raise PlaceLost("Dask has no worker to compute blocks.") from None
        failed = [i for i, future in enumerate(futures) if future.status == "error"]
        if failed:
            futures[failed[0]].result()
        return futures


def _session(
    connections: list[Any], numbers: list[int], *, early: bool = True
) -> Session:
    if not connections or not sum(numbers):
        raise ValueError("X has no rows: all of its blocks are empty.")
    return Session(connections, numbers, early=early)


def opened(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Collection:
    """Return the rows of Dask collections for a fit.

    Parameters
    ----------
    estimator : LinearEstimator
    X : dask.array.Array, dask.dataframe.DataFrame or list of Delayed
    y : dask.array.Array, dask.dataframe.Series or .DataFrame, or list of Delayed
        Or an array in memory, where X is an array of known size.
    sample_weight : as y, a number, or None
    """
    X, y = _joined("X", X), _joined("y", y)
    sample_weight = _joined("sample_weight", sample_weight)
    estimator._check_X(_row_like(X), reset=True)
    names = np.array(list(y.columns)) if hasattr(y, "columns") else None
    each = sample_weight is not None and np.ndim(sample_weight) > 0
    number = 1.0 if each or sample_weight is None else float(sample_weight)
    source = _source(X, y, sample_weight if each else None)
    try:
        return Collection(estimator, source, names, number)
    except BaseException:
        source.close()
        raise


def _source(X: Any, y: Any, sample_weight: Any) -> _Blocks:
    """Return where the blocks of collections come from, which are persisted."""
    client = _client()
    given = _collections(X, y, sample_weight)
    collections = list(given.values())
    if client is not None:
        collections = list(client.persist(collections))
    blocks = list(map(_delayed, collections))
    n = len(blocks[0])
    for name, each in zip(given, blocks, strict=True):
        if len(each) != n:
            raise ValueError(
                f"X and {name} must have the same blocks of rows; X has {n} blocks, "
                f"and {name} {len(each)}."
            )
    if len(blocks) < 3:
        blocks.append([None] * n)
    return _Blocks(blocks[0], blocks[1], blocks[2], client, collections)


def _joined(name: str, x: Any) -> Any:
    """Return a list of delayed blocks as a collection, and else what is given.

    The first block is computed where the others will be, and says what they are.
    """
    if not isinstance(x, (list, tuple)) or not x:
        return x
    if not all(isinstance(each, Delayed) for each in x):
        if any(hasattr(each, "__dask_graph__") for each in x):
            raise TypeError(
                f"A list given as {name} must have delayed blocks, made by "
                "dask.delayed, and nothing else."
            )
        return x
    like = dask.delayed(_no_rows, pure=False)(x[0]).compute()
    if hasattr(like, "index"):
        return dask.dataframe.from_delayed(list(x), meta=like)
    shape = np.nan, *like.shape[1:]
    arrays = [
        dask.array.from_delayed(each, shape, dtype=like.dtype, meta=like) for each in x
    ]
    return dask.array.concatenate(arrays, allow_unknown_chunksizes=True)


def _no_rows(block: Any) -> Any:
    return block[:0] if hasattr(block, "shape") else np.asarray(block)[:0]


def _collections(X: Any, y: Any, sample_weight: Any) -> dict[str, Any]:
    """Return the collections by their names, in the same blocks of whole rows."""
    if isinstance(X, dask.array.Array) and X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    given = {"X": X, "y": _aligned("y", y, X)}
    if isinstance(given["y"], dask.array.Array) and given["y"].ndim > 1:
        given["y"] = given["y"].rechunk({1: -1})
    if sample_weight is not None:
        given["sample_weight"] = _aligned("sample_weight", sample_weight, X)
    return given


def _client() -> Any:
    try:
        return distributed.get_client()
    except ValueError:
        return None


def _row_like(X: Any) -> Any:
    """Return a row in memory with the columns of a collection."""
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, got {X.ndim}.")
    if hasattr(X, "columns"):
        return X._meta_nonempty.iloc[:1]
    return np.zeros((1, X.shape[1]), X.dtype)


def _aligned(name: str, y: Any, X: Any) -> Any:
    """Return a collection in blocks of the rows of X, as far as these are known."""
    if isinstance(X, dask.array.Array):
        known = not np.isnan(X.shape[0])
        if not hasattr(y, "__dask_graph__") and known:
            y = dask.array.from_array(np.asarray(y), chunks=-1)
        if isinstance(y, dask.array.Array) and known and not np.isnan(y.shape[0]):
            if y.shape[0] != X.shape[0]:
                raise ValueError(
                    f"X and {name} must have the same number of rows; X has "
                    f"{X.shape[0]}, and {name} {y.shape[0]}."
                )
            return y.rechunk({0: X.chunks[0]})
    if not hasattr(y, "__dask_graph__"):
        raise TypeError(
            f"{name} must be a Dask collection in the same blocks of rows as X; got "
            f"{type(y).__name__}."
        )
    return y


def _delayed(x: Any) -> list[Any]:
    blocks = x.to_delayed()
    return list(np.ravel(blocks)) if isinstance(blocks, np.ndarray) else list(blocks)


def mapped(estimator: Any, method: str, X: Any) -> Any:
    """Return the results of a method for the rows of a collection, in its blocks.

    Parameters
    ----------
    estimator : estimator instance
        Fitted.
    method : str
    X : dask.array.Array, dask.dataframe.DataFrame or list of Delayed
    """
    X = _joined("X", X)
    copied = _without_callbacks(estimator)
    like = getattr(copied, method)(_row_like(X))

    def block(rows: Any) -> Any:
        if not rows.shape[0]:
            return np.empty((0, *like.shape[1:]), like.dtype)
        return getattr(copied, method)(rows)

    meta = np.empty((0, *like.shape[1:]), like.dtype)
    if hasattr(X, "columns"):
        return X.map_partitions(block, meta=meta)
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    if like.ndim == 1:
        return X.map_blocks(block, dtype=like.dtype, drop_axis=1, meta=meta)
    chunks = X.chunks[0], (like.shape[1],)
    return X.map_blocks(block, dtype=like.dtype, chunks=chunks, meta=meta)


def _without_callbacks(estimator: Any) -> Any:
    """Return a copy for other processes; callbacks are of this one."""
    copied = copy_for_blocks(estimator)
    fitted = {k: v for k, v in vars(estimator).items() if k.endswith("_")}
    vars(copied).update(fitted)
    return copied


def score(
    estimator: Any, X: Any, y: Any, sample_weight: Any, power: float | None
) -> float:
    """Return the accuracy, or the share of a deviance that predictions explain.

    Parameters
    ----------
    estimator : estimator instance
        Fitted.
    X, y, sample_weight
        As of ``opened``.
    power : float or None
        Of the deviance, zero for squares; None for classes.
    """
    X, y = _joined("X", X), _joined("y", y)
    given = _collections(X, y, _joined("sample_weight", sample_weight)).values()
    blocks = list(zip(*map(_delayed, given), strict=True))
    # One message holds the estimator for all blocks.
    model = dask.delayed(_without_callbacks(estimator), pure=False, traverse=False)

    def total(function: Any, *args: Any) -> Any:
        parts = [dask.delayed(function)(model, *args, *block) for block in blocks]
        return sum(dask.compute(*parts))

    if power is None:
        correct, weight = total(_correct)
        return float(correct / weight)
    sums = total(_sums)
    unexplained, all_of_it = total(_deviances, sums[1:] / sums[0], power)
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = 1.0 - unexplained / all_of_it
    scores = np.where(all_of_it > 0.0, scores, np.where(unexplained > 0.0, 0.0, 1.0))
    return float(scores.mean())


def _weights(X: Any, sample_weight: Any) -> Any:
    if sample_weight is None:
        return np.ones(X.shape[0])
    return np.asarray(sample_weight, dtype=np.float64).ravel()


def _correct(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
    weights = _weights(X, sample_weight)
    if not len(weights):
        return np.zeros(2)
    predicted = model.predict(X)
    correct = np.asarray(y).reshape(predicted.shape) == predicted
    correct = correct.reshape(len(weights), -1).all(axis=1)
    return np.array([weights @ correct, weights.sum()])


def _sums(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
    """Return the sum of the weights, and weighted sums of the columns of y."""
    weights = _weights(X, sample_weight)
    if not len(weights):
        return np.zeros(1)
    y = np.asarray(y, dtype=np.float64).reshape(len(weights), -1)
    return np.append(weights.sum(), weights @ y)


def _deviances(
    model: Any, mean: Any, power: float, X: Any, y: Any, sample_weight: Any = None
) -> Any:
    """Return sums of deviances from predictions and from means, for each column."""
    weights = _weights(X, sample_weight)
    if not weights.sum() > 0.0:
        return np.zeros((2, len(mean)))
    y = np.asarray(y, dtype=np.float64).reshape(len(weights), -1)
    predicted = model.predict(X).reshape(y.shape)
    if power:
        predicted = np.maximum(predicted, np.finfo(np.float64).tiny)
    means = np.broadcast_to(mean, y.shape)
    of = {"sample_weight": weights, "power": power}
    return weights.sum() * np.array(
        [
            [
                mean_tweedie_deviance(column, expected, **of)
                for column, expected in zip(y.T, each.T, strict=True)
            ]
            for each in (predicted, means)
        ]
    )
