"""Does λ survive SGD? The two long experiments of the chapter sgd_balance at full size.

    python benchmarks/label_noise.py [--quick] [--save FILE] [--seed 2026] [--replicas 32]

Second task: N = 4, λ_0 = 10, η = 0.01, b = 4, σ = 0.5, so K_λ = 40000 steps. The network holds a first task under label
noise for 0, 1, 2, 3, 4 K_λ, then learns a second one by gradient flow; both tasks have the singular values
(2, 1.5, 1, 0.5) in random bases. The chapter does the same at σ = 1, a quarter of the steps.

Drift: N_i = 3, N_o = 12, s = (2, 1.5, 1), η = 0.01, b = 8, σ = 1.25, ten e-folding times from λ = −2 and from λ = 6;
the ratio λ_α/λ_α* is a mean over the last two. The chapter does the same at σ = 2.5, a quarter of the steps.

"theory" integrates the mean drift with the stationary residual of a finite step (`label_noise.course`), and lets a
fitted network with exactly these λ_α learn the second task. ± is a standard error over replicas, z the distance from
the theory in standard errors. What the theory leaves out is of relative order ησ²/b: 0.06 % and 0.2 %.
One core takes 52 s, and 16 s with --quick, the noise of the chapter (four times the variance, a quarter of the steps).
--save runs both and writes the record that the chapter reads: chapters/data/label_noise.csv.
"""

import argparse
import csv

import numpy as np

from lindyn_lite import flow, kernel, label_noise, sgd, starts, tasks


def fitted(S, lam):
    """Weights that fit S, with one λ for each mode."""
    U, s, Vt = np.linalg.svd(S)
    root = np.hypot(s, lam / 2)
    return [np.sqrt(root - lam / 2)[:, None] * Vt, U * np.sqrt(root + lam / 2)]


def learnt_distance(layers, S, time):
    """Kernel distance from the weights to the end of gradient flow on S."""
    end = flow.gradient_flow(layers, S, [time], rtol=1e-8)
    return kernel.distance(layers, [W[-1] for W in end.weights])


def second_task(sigma, seed, replicas):
    """Hold task 1 with noise, learn task 2 without: kernel distance of task 2 after each holding time; a record."""
    s, lam0, eta, batch = np.array([2.0, 1.5, 1.0, 0.5]), 10.0, 0.01, 4
    rng = np.random.default_rng(seed)
    pair = [(tasks.random_basis(4, rng) * s) @ tasks.random_basis(4, rng) for _ in range(2)]
    K = round(label_noise.decay_steps(4, eta, batch, sigma))
    start = starts.lambda_balanced(4, 4, 4, lam0, rng, s, aligned_to=pair[0])
    run = sgd.label_noise(start, pair[0], eta, batch, sigma, 4 * K, rng, replicas, every=K)
    lam = np.trace(run.balance[0], axis1=2, axis2=3) / 4
    predicted = label_noise.course(lam0, s, 4, 4, eta, batch, sigma, np.arange(5) * K)
    times = 30 / (1 + predicted.mean(axis=1))
    D = np.empty((5, replicas))
    for j, r in np.ndindex(D.shape):
        D[j, r] = learnt_distance([W[j, r] for W in run.weights], pair[1], times[j])
    expected = [
        learnt_distance(fitted(pair[0], row), pair[1], time) for row, time in zip(predicted, times, strict=True)
    ]
    print(f"second task, sigma = {sigma}, K_lambda = {K}, seed {seed}, {replicas} replicas")
    print("K/K_lambda  λ                 theory    z      D                    theory    z      ratio to the row above")
    for j in range(5):
        ratio = "" if j == 0 else f"{D[j].mean() / D[j - 1].mean():.3f} (theory {expected[j] / expected[j - 1]:.3f})"
        told = predicted[j].mean()
        print(
            f"{j:>10}  {lam[j].mean():8.5f}±{error(lam[j]):.5f} {told:8.5f} {z(lam[j], told)}"
            f"  {D[j].mean():.6f}±{error(D[j]):.6f}  {expected[j]:.6f} {z(D[j], expected[j])}  {ratio}"
        )
    return [("second task", sigma, lam0, j, D[j].mean(), error(D[j]), expected[j]) for j in range(5)]


def unequal(sigma, seed, replicas):
    """Both groups of replicas of the drift to λ*; returns a record."""
    s, shape, eta, batch = np.array([2.0, 1.5, 1.0]), (12, 3), 0.01, 8
    rng = np.random.default_rng(seed)
    S = np.zeros(shape)
    S[range(3), range(3)] = s
    steps = int(10 * batch / (eta * sigma) ** 2 * 15 / 72)
    star = label_noise.resting_lambda(s, *shape)
    print(f"drift, sigma = {sigma}, {steps} steps, seed {seed}, {replicas} replicas, lambda* = {star}")
    rows = []
    for lam0 in (-2.0, 6.0):
        start = starts.lambda_balanced(3, 3, 12, lam0, rng, s, aligned_to=S)
        run = sgd.label_noise(start, S, eta, batch, sigma, steps, rng, replicas, every=steps // 50)
        ratio = np.linalg.eigvalsh(run.balance[0])[-11:, :, ::-1].mean(axis=0) / star
        end = label_noise.course(lam0, s, *shape, eta, batch, sigma, steps) / star
        for mode in range(3):
            print(
                f"from {lam0:2g}, mode {mode + 1}: λ/λ* = {ratio[:, mode].mean():.5f}±{error(ratio[:, mode]):.5f}, "
                f"theory {end[mode]:.5f}, z = {z(ratio[:, mode], end[mode])}"
            )
            rows.append(("drift", sigma, lam0, mode, ratio[:, mode].mean(), error(ratio[:, mode]), end[mode]))
    return rows


def error(values):
    """Standard error of the mean."""
    return np.std(values, ddof=1) / np.sqrt(len(values))


def z(values, expected):
    """Distance of the mean from what is expected, in standard errors; a dash if nothing scatters."""
    scatter = error(values)
    return f"{(values.mean() - expected) / scatter:+5.2f}" if scatter > 1e-12 else "  -  "


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the sizes of the chapter: four times the noise variance")
    parser.add_argument("--save", metavar="FILE", help="run both sizes and write their means, errors and theory as CSV")
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--replicas", type=int, default=32)
    options = parser.parse_args()
    record = []
    for factor in (1, 2) if options.save else (2,) if options.quick else (1,):
        record += second_task(0.5 * factor, options.seed, options.replicas)
        record += unequal(1.25 * factor, options.seed, options.replicas)
    if options.save:
        with open(options.save, "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(("experiment", "sigma", "start", "row", "mean", "error", "theory"))
            writer.writerows([*row[:4], *(f"{value:.6g}" for value in row[4:])] for row in record)
