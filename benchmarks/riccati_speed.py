"""Speed of the closed form against bare products, scipy's DOP853 and gradient descent: one table of ratios.

    python benchmarks/riccati_speed.py [--quick]

Every row is one start, a square net of width N with λ, and 1001 times up to t = 5 (t = 1 for N = 256). All methods
give W_1ᵀW_1, W_2W_1 and W_2W_2ᵀ at the same times, in one process; `solve` and the products are medians of repeats,
the others one run. `solve` is in milliseconds, `/products` is its time over that of the bare products QQᵀ. The other
columns are the time of a method over that of solve (above 1: the closed form is faster), with its largest blockwise
relative error against the closed form in parentheses. DOP853 runs at rtol 1e-8, 1e-12 and 2.3e-14, the least that scipy
accepts and the nearest it comes to the accuracy of the closed form, which its tests hold to 1e-14. Where N ≥ 64 and
λ = 1e4, DOP853 does the first tenth of the interval and its time is multiplied by ten (marked *): stability sets its
steps there, and they are all alike. Euler's method is unstable at λ = 1e4. The whole table takes some minutes, --quick
(N = 4 and 16) one.
"""

import argparse
import time
import warnings

import numpy as np
from scipy.integrate import solve_ivp

from lindyn_lite import riccati, starts

SPECTRUM = (1.5, 0.5)


def median(run, repeats):
    """Median time of a run, and its result."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        result = run()
        times.append(time.perf_counter() - begin)
    return float(np.median(times)), result


def regular_problem(N, lam, rng):
    """A start that reaches the global minimum, and a teacher."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        while True:
            S = np.diag(np.linspace(*SPECTRUM, N))
            W = starts.lambda_balanced(N, N, N, lam, rng, np.linspace(0.5, 0.1, N))
            try:
                riccati.solve(*W, S, 1.0, lam)
            except riccati.StableManifoldWarning:
                continue
            return W, S


def velocity(S, N):
    """Gradient flow of the flattened weights."""

    def f(_, y):
        W1, W2 = y[: N * N].reshape(N, N), y[N * N :].reshape(N, N)
        E = S - W2 @ W1
        return np.concatenate([(W2.T @ E).ravel(), (E @ W1.T).ravel()])

    return f


def grams(Y, N):
    """Blocks from flattened weights ``(T, 2N²)``."""
    W1, W2 = Y[:, : N * N].reshape(-1, N, N), Y[:, N * N :].reshape(-1, N, N)
    return np.swapaxes(W1, 1, 2) @ W1, W2 @ W1, W2 @ np.swapaxes(W2, 1, 2)


def error(blocks, solution):
    """Largest blockwise relative error over all times."""
    exact = solution.input_similarity, solution.function, solution.output_similarity
    return max(
        float((np.linalg.norm(a - b, axis=(1, 2)) / np.linalg.norm(b, axis=(1, 2))).max())
        for a, b in zip(blocks, exact, strict=True)
    )


def euler(y, f, t):
    """Gradient descent with η near 1e-3 that meets every time t."""
    every = max(1, round((t[1] - t[0]) / 1e-3))
    h, kept = (t[1] - t[0]) / every, [y]
    for _ in t[1:]:
        for _ in range(every):
            y = y + h * f(0, y)
        kept.append(y)
    return np.array(kept)


def row(N, lam, repeats):
    """One line of the table."""
    W, S = regular_problem(N, lam, np.random.default_rng(N))
    t = np.linspace(0, 5 if N <= 64 else 1, 1001)
    Q = np.repeat(np.concatenate([W[0].T, W[1]])[None], len(t), axis=0)
    Q[:1] @ np.swapaxes(Q[:1], 1, 2)  # the first call of a library costs more
    bare, _ = median(lambda: Q @ np.swapaxes(Q, 1, 2), repeats)
    ours, solution = median(lambda: riccati.solve(*W, S, t, lam), repeats)
    cells = [f"{N:4d} {lam:6g} {1e3 * ours:10.2f} {ours / bare:9.1f}"]
    y0, f = np.concatenate([W[0].ravel(), W[1].ravel()]), velocity(S, N)
    small = 1e-3 * min(np.linalg.norm(W[0]), np.linalg.norm(W[1])) / N
    share = 10 if lam > 1e3 and N >= 64 else 1
    part = t[: (len(t) - 1) // share + 1]
    exact = solution if share == 1 else riccati.solve(*W, S, part, lam)
    for rtol in (1e-8, 1e-12, 2.3e-14):

        def ode(rtol=rtol):
            return grams(solve_ivp(f, part[[0, -1]], y0, "DOP853", part, rtol=rtol, atol=rtol * small).y.T, N)

        spent, blocks = median(ode, 1)
        cells.append(f"{share * spent / ours:9.1f}{'*' if share > 1 else ' '}({error(blocks, exact):7.1e})")
    if lam > 1e3:
        cells.append(f"{'unstable':>19s}")
    else:
        spent, kept = median(lambda: euler(y0, f, t), 1)
        cells.append(f"{spent / ours:9.1f} ({error(grams(kept, N), solution):7.1e})")
    print("  ".join(cells), flush=True)


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="N = 4 and 16 only")
    quick = parser.parse_args().quick
    heads = ("DOP853 1e-8", "DOP853 1e-12", "DOP853 2.3e-14", "Euler 1e-3")
    print("   N      λ  solve, ms /products  " + "  ".join(f"{head:>19s}" for head in heads))
    for N in (4, 16) if quick else (4, 16, 64, 256):
        for lam in (0.0, 1.0, 10.0, 100.0, 1e4):
            row(N, lam, 1 if N > 64 else 5)


if __name__ == "__main__":
    main()
