"""The results of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from irrun.compat.openvino._ports import ConstOutput

__all__ = ["OVDict"]


class OVDict(Mapping[Any, np.ndarray]):
    """The results of a run: a mapping by port. Positions and names are also accepted as keys."""

    def __init__(self, arrays: dict[ConstOutput, np.ndarray]) -> None:
        self._arrays = arrays

    def __getitem__(self, key: Any) -> np.ndarray:
        if isinstance(key, ConstOutput):
            return self._arrays[key]
        if isinstance(key, int):
            if not -len(self) <= key < len(self):
                raise KeyError(key)
            return self.to_tuple()[key]
        if isinstance(key, str):
            for port, array in self._arrays.items():
                if key in port._names:
                    return array
            raise KeyError(key)
        raise TypeError(f"a result is found by its port, position or name, not by {type(key).__name__}")

    def __iter__(self) -> Iterator[ConstOutput]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __repr__(self) -> str:
        return repr(self._arrays)

    def names(self) -> tuple[set[str], ...]:
        return tuple(port.names for port in self._arrays)

    def to_dict(self) -> dict[ConstOutput, np.ndarray]:
        return self._arrays

    def to_tuple(self) -> tuple[np.ndarray, ...]:
        return tuple(self._arrays.values())
