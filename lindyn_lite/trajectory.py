"""What a network computes while it learns: one shape of result for exact and numerical solutions.

`lindyn_lite.flow`, `lindyn_lite.closed_flow` and `lindyn_lite.riccati` return these or subclasses of them, so that a
page can swap one for the other.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class FunctionTrajectory:
    """The product of a network over time.

    Attributes
    ----------
    t
        Times in units of 1/η, shape ``(T,)``.
    function
        ``W(t) = W_L … W_1``, shape ``(T, d_L, d_0)``.
    teacher
        ``M``, shape ``(d_L, d_0)``.
    method
        How it was computed, with tolerances or step size.
    """

    t: NDArray[np.float64]
    function: NDArray[np.float64]
    teacher: NDArray[np.float64]
    method: str

    @property
    def loss(self) -> NDArray[np.float64]:
        """``½‖M − W(t)‖²``, shape ``(T,)``."""
        return 0.5 * np.sum((self.teacher - self.function) ** 2, axis=(-2, -1))


@dataclass(frozen=True, kw_only=True)
class Trajectory(FunctionTrajectory):
    """The same with the Gram matrices of the first and the last layer.

    Attributes
    ----------
    input_similarity
        ``W_1ᵀW_1``, shape ``(T, d_0, d_0)``.
    output_similarity
        ``W_LW_Lᵀ``, shape ``(T, d_L, d_L)``.
    """

    input_similarity: NDArray[np.float64]
    output_similarity: NDArray[np.float64]
