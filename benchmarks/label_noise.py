"""Does λ survive SGD? The two long experiments of the chapter sgd_balance at full size.

    python benchmarks/label_noise.py [--quick] [--seed 2026]

Second task: N = 4, λ_0 = 10, η = 0.01, b = 4, σ = 0.5, so K_λ = 40000 steps. The network holds a first task under label
noise for 0, 1, 2, 3, 4 K_λ, then learns a second one by gradient flow; both tasks have the singular values
(2, 1.5, 1, 0.5) in random bases. The chapter does the same at σ = 1, a quarter of the steps.

Drift: N_i = 3, N_o = 12, s = (2, 1.5, 1), η = 0.01, b = 8, σ = 1.25, ten e-folding times from λ = −2 and from λ = 6;
the ratio λ_α/λ_α* is a mean over the last two. The chapter does the same at σ = 2.5, a quarter of the steps.

"theory" integrates the mean drift with the stationary residual of a finite step. Standard errors are over replicas.
The whole takes about half a minute, --quick (the sizes of the chapter) a quarter of that.
"""

import argparse

import numpy as np

from lindyn_lite import flow, kernel, label_noise, sgd, starts, tasks


def fitted_distance(lam, s, pair, rng):
    """Kernel distance between two fitted networks with exactly this λ."""
    return kernel.distance(*(starts.lambda_balanced(4, 4, 4, lam, rng, s, aligned_to=S) for S in pair))


def second_task(sigma, seed, replicas=8):
    """Hold task 1 with noise, learn task 2 without: kernel distance of task 2 against the holding time."""
    s, lam0, eta, batch = np.array([2.0, 1.5, 1.0, 0.5]), 10.0, 0.01, 4
    rng = np.random.default_rng(seed)
    pair = [(tasks.random_basis(4, rng) * s) @ tasks.random_basis(4, rng) for _ in range(2)]
    K = round(label_noise.decay_steps(4, eta, batch, sigma))
    start = starts.lambda_balanced(4, 4, 4, lam0, rng, s, aligned_to=pair[0])
    run = sgd.label_noise(start, pair[0], eta, batch, sigma, 4 * K, rng, replicas, every=K)
    lam = np.trace(run.balance[0], axis1=2, axis2=3) / 4
    D = np.empty((5, replicas))
    for j, r in np.ndindex(D.shape):
        layers = [W[j, r] for W in run.weights]
        end = flow.gradient_flow(layers, pair[1], [30 / (1 + lam[j, r])], rtol=1e-8)
        D[j, r] = kernel.distance(layers, [W[-1] for W in end.weights])
    predicted = label_noise.course(lam0, s, 4, 4, eta, batch, sigma, run.t / eta).mean(axis=1)
    expected = [fitted_distance(value, s, pair, rng) for value in predicted]
    print(f"second task, sigma = {sigma}, K_lambda = {K}, seed {seed}, {replicas} replicas")
    print("K/K_lambda  lambda ± st. error     theory    D ± st. error            theory    ratio to the row above")
    for j in range(5):
        ratio = "" if j == 0 else f"{D[j].mean() / D[j - 1].mean():8.3f} (theory {expected[j] / expected[j - 1]:.3f})"
        numbers = (lam[j].mean(), error(lam[j]), predicted[j], D[j].mean(), error(D[j]), expected[j])
        print("{:>10}  {:8.5f} ± {:.5f}   {:8.5f}   {:.6f} ± {:.6f}   {:.6f} {}".format(j, *numbers, ratio))


def unequal(sigma, seed, replicas=8):
    """Both groups of replicas of the drift to λ*."""
    s, shape, eta, batch = np.array([2.0, 1.5, 1.0]), (12, 3), 0.01, 8
    rng = np.random.default_rng(seed)
    S = np.zeros(shape)
    S[range(3), range(3)] = s
    unit = batch / (eta * sigma) ** 2
    steps = int(10 * unit * 15 / 72)
    star = label_noise.resting_lambda(s, *shape)
    print(f"drift, sigma = {sigma}, {steps} steps, seed {seed}, lambda* = {star}")
    for lam0 in (-2.0, 6.0):
        start = starts.lambda_balanced(3, 3, 12, lam0, rng, s, aligned_to=S)
        run = sgd.label_noise(start, S, eta, batch, sigma, steps, rng, replicas, every=steps // 50)
        ratio = np.linalg.eigvalsh(run.balance[0])[-11:, :, ::-1].mean(axis=0) / star
        end = label_noise.course(lam0, s, *shape, eta, batch, sigma, steps) / star
        print(f"from {lam0:g}: {ratio.mean(axis=0).round(4)} ± {error(ratio).round(4)} of it, theory {end.round(4)}")


def error(values):
    """Standard error of the mean over replicas, the first axis of what is left."""
    return np.std(values, axis=0, ddof=1) / np.sqrt(len(values))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the sizes of the chapter: four times the noise variance")
    parser.add_argument("--seed", type=int, default=2026)
    options = parser.parse_args()
    factor = 2 if options.quick else 1
    second_task(0.5 * factor, options.seed)
    unequal(1.25 * factor, options.seed)
