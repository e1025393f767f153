# SPDX-License-Identifier: Apache-2.0
"""What the accountant must agree with: the same quantities by other means, in many digits.

Nothing here convolves on a grid or uses a Fourier transform. A guarantee is one of two things:

- **atoms**, a list of (p, q) probabilities of the outcomes under the two neighbouring inputs;
- a **profile**, the function h(ε) = sup_S P(S) - e^ε Q(S), known in closed form for every real ε.

Compositions are sums over all tuples of outcomes, one- or two-dimensional integrals, or closed forms.
`mp.dps` is the number of digits: enough to see δ = 1e-100 in a difference of numbers near 1. Quadratures lower
it, because 20 digits are plenty there and cost less.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import product as tuples

from mpmath import binomial, exp, expm1, factorial, inf, log, log1p, mp, mpf, ncdf, npdf, quad, sqrt, workdps

mp.dps = 120

Atoms = Sequence[tuple[mpf, mpf]]
Profile = Callable[[mpf], mpf]


# --- atoms: finitely many outcomes ------------------------------------------------------------------


def atoms(p: Iterable[float], q: Iterable[float]) -> Atoms:
    return [(mpf(a), mpf(b)) for a, b in zip(p, q, strict=True)]


def randomized_response(epsilon: float, outcomes: int = 2) -> Atoms:
    """The true answer is kept with e^ε times the probability of each other answer."""
    odds, total = exp(mpf(epsilon)), exp(mpf(epsilon)) + outcomes - 1
    return [(odds / total, 1 / total), (1 / total, odds / total)] + [(1 / total, 1 / total)] * (outcomes - 2)


def leaky_randomized_response(epsilon: float, delta: float) -> Atoms:
    """With probability δ the input is shown; otherwise randomized response. The worst (ε, δ) mechanism."""
    kept, shown = 1 - mpf(delta), mpf(delta)
    return [(kept * p, kept * q) for p, q in randomized_response(epsilon)] + [
        (shown, mpf(0)),
        (mpf(0), shown),
    ]


def discrete_laplace(scale: float, sensitivity: int = 1) -> Atoms:
    """Integer noise with mass ∝ e^(-|z|/scale), centres 0 and `sensitivity`; each tail is one atom."""
    decay = exp(-1 / mpf(scale))
    centre, tail = (1 - decay) / (1 + decay), 1 / (1 + decay)
    between = [(centre * decay**z, centre * decay ** (sensitivity - z)) for z in range(1, sensitivity)]
    far = tail * decay**sensitivity
    return [(tail, far), *between, (far, tail)]


def discrete_gaussian(scale: float, sensitivity: int = 1) -> Atoms:
    """Integer noise with mass ∝ e^(-z²/2·scale²), summed until nothing above 1e-300 is left."""
    variance = 2 * mpf(scale) ** 2
    reach = int(sqrt(variance * 700)) + sensitivity + 2
    masses = [exp(-(mpf(z) ** 2) / variance) for z in range(reach + 1)]
    total = 2 * sum(masses) - masses[0]
    seen = range(-reach + sensitivity, reach + 1)
    return [(masses[abs(z)] / total, masses[abs(z - sensitivity)] / total) for z in seen]


def swapped(pair: Atoms) -> Atoms:
    """The other direction."""
    return [(q, p) for p, q in pair]


def composed(*parts: Atoms) -> Atoms:
    """All tuples of outcomes, their probabilities multiplied; equal ratios are merged to keep it small."""
    result: Atoms = [(mpf(1), mpf(1))]
    for part in parts:
        merged: dict[str, list[mpf]] = defaultdict(lambda: [mpf(0), mpf(0)])
        for (p1, q1), (p2, q2) in tuples(result, part):
            p, q = p1 * p2, q1 * q2
            key = mp.nstr(p / q, 40) if q else "inf"
            merged[key][0] += p
            merged[key][1] += q
        result = [(p, q) for p, q in merged.values()]
    return result


def hockey_stick(pair: Atoms, epsilon: float) -> mpf:
    """δ(ε) in one direction: the mass by which P exceeds e^ε Q."""
    gamma = exp(mpf(epsilon))
    return sum((max(p - gamma * q, mpf(0)) for p, q in pair), mpf(0))


def delta_of(pair: Atoms, epsilon: float) -> mpf:
    """δ(ε) of the worse direction."""
    return max(hockey_stick(pair, epsilon), hockey_stick(swapped(pair), epsilon))


def miss_rate(pair: Atoms, false_alarm: float) -> mpf:
    """The trade-off curve by Neyman and Pearson: call out the outcomes with the largest q/p first."""
    left, missed = mpf(false_alarm), mpf(1)
    for p, q in sorted(pair, key=lambda atom: -(atom[1] / atom[0]) if atom[0] else -inf):
        share = min(mpf(1), left / p) if p else mpf(1)
        left, missed = left - share * p, missed - share * q
    return max(missed, mpf(0))


def renyi_of(pair: Atoms, order: float) -> mpf:
    """Rényi divergence of P from Q: infinite when P has mass where Q has none."""
    if any(p > 0 and q == 0 for p, q in pair):
        return inf
    a = mpf(order)
    return log(sum((p**a * q ** (1 - a) for p, q in pair if p), mpf(0))) / (a - 1)


def poisson(pair: Atoms, rate: float) -> Atoms:
    """The pair (with the person, without) when the person is in the sample with probability `rate`."""
    r = mpf(rate)
    return [((1 - r) * q + r * p, q) for p, q in pair]


def mirrored(pair: Atoms) -> Atoms:
    """The pair that has this one's profile above ε = 0 in both directions: what replacing a record needs."""
    up = [(p, q) for p, q in pair if p > q]
    rest = 1 - sum(p + q for p, q in up)
    return [*up, *swapped(up), (rest, rest)]


def optimal_composition(epsilon: float, delta: float, count: int, at: float) -> mpf:
    """The least δ at ε=`at` of `count` mechanisms that are (ε, δ)-private and nothing more (the KOV sum).

    The sum runs up from the first term that counts, so it costs about √count terms.
    """
    e, target = mpf(epsilon), mpf(at)
    keep, flip = 1 / (1 + exp(-e)), 1 / (1 + exp(e))
    first = int(mp.floor((target / e + count) / 2)) + 1
    total = mpf(0)
    if first <= count:
        first = max(first, 0)
        mass = exp(_log_binomial(count, first) + first * log(keep) + (count - first) * log(flip))
        for j in range(first, count + 1):
            term = mass * -expm1(target - (2 * j - count) * e)
            total += term
            if j > count * keep and term < total * mpf("1e-40"):
                break
            mass *= mpf(count - j) / (j + 1) * keep / flip
    leaked = -expm1(count * log1p(-mpf(delta)))
    return leaked + (1 - leaked) * total


def _log_binomial(n: int, k: int) -> mpf:
    return (
        mp.loggamma(n + 1) - mp.loggamma(k + 1) - mp.loggamma(n - k + 1) if n > 300 else log(binomial(n, k))
    )


# --- profiles: closed forms for every real ε --------------------------------------------------------


def gaussian(mu: float) -> Profile:
    """Two normal distributions of unit variance, `mu` apart."""
    m = mpf(mu)

    def profile(epsilon: float) -> mpf:
        e = mpf(epsilon)
        return ncdf(m / 2 - e / m) - exp(e) * ncdf(-m / 2 - e / m)

    return profile


def laplace(epsilon0: float) -> Profile:
    """Two Laplace distributions whose centres are ε0 scales apart."""
    bound = mpf(epsilon0)

    def profile(epsilon: float) -> mpf:
        e = mpf(epsilon)
        if e >= bound:
            return mpf(0)
        return -expm1(e) if e <= -bound else -expm1((e - bound) / 2)

    return profile


def bounded_range(epsilon0: float) -> Profile:
    """The exponential mechanism: two losses ε0 apart, at the worst place for each ε."""
    bound = mpf(epsilon0)

    def profile(epsilon: float) -> mpf:
        e = mpf(epsilon)
        if e >= bound:
            return mpf(0)
        return -expm1(e) if e <= -bound else (exp(bound / 2) - exp(e / 2)) ** 2 / expm1(bound)

    return profile


def of_atoms(pair: Atoms) -> Profile:
    return lambda epsilon: hockey_stick(pair, epsilon)


def poisson_remove(base: Profile, rate: float) -> Profile:
    """((1-q)Q + qP, Q): the person may have been in the sample."""
    r = mpf(rate)

    def profile(epsilon: float) -> mpf:
        gamma = exp(mpf(epsilon))
        inner = 1 + (gamma - 1) / r
        return r * base(log(inner)) if inner > 0 else 1 - gamma

    return profile


def poisson_add(base: Profile, rate: float) -> Profile:
    """(P, (1-q)P + qQ): the person may have been added to the sample."""
    r = mpf(rate)

    def profile(epsilon: float) -> mpf:
        gamma = exp(mpf(epsilon))
        rest = 1 - gamma * (1 - r)
        return rest * base(log(gamma * r / rest)) if rest > 0 else mpf(0)

    return profile


def without_replacement(base: Profile, rate: float) -> Profile:
    """One record of n is replaced, m = rate·n are drawn; `base` is the profile for replacing one record."""
    remove = poisson_remove(base, rate)

    def profile(epsilon: float) -> mpf:
        e = mpf(epsilon)
        return remove(e) if e >= 0 else -expm1(e) + exp(e) * remove(-e)

    return profile


def antipodal(sigma: float, rate: float) -> Profile:
    """Poisson sampling when one record is replaced: (1-q)N(0)+qN(±1), noise `sigma`. The ratio is monotone."""
    s, r = mpf(sigma), mpf(rate)

    def profile(epsilon: float) -> mpf:
        gamma = exp(mpf(epsilon))

        def excess(x: mpf) -> mpf:
            tilt = exp(-1 / (2 * s * s))
            return (1 - r) * (1 - gamma) + r * tilt * (exp(x / s**2) - gamma * exp(-x / s**2))

        x = _crossing(excess)
        upper = (1 - r) * ncdf(-x / s) + r * ncdf((1 - x) / s)
        return upper - gamma * ((1 - r) * ncdf(-x / s) + r * ncdf((-1 - x) / s))

    return profile


def _crossing(rising: Callable[[mpf], mpf]) -> mpf:
    """Where a rising function is zero."""
    low, high = mpf(-1), mpf(1)
    while rising(low) > 0:
        low *= 2
    while rising(high) < 0:
        high *= 2
    for _ in range(int(mp.prec)):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) < 0 else (low, middle)
    return (low + high) / 2


def epsilon_of(profile: Profile, delta: float) -> mpf:
    """The least ε ≥ 0 with profile(ε) ≤ δ."""
    target = mpf(delta)
    if profile(mpf(0)) <= target:
        return mpf(0)
    return _crossing(lambda e: target - profile(e))


def worse(*profiles: Profile) -> Profile:
    """The greater of several profiles at each ε: the directions of one mechanism."""
    return lambda epsilon: max(profile(epsilon) for profile in profiles)


# --- integrals over one continuous outcome ----------------------------------------------------------


def after_atoms(pair: Atoms, rest: Profile) -> Profile:
    """The profile of a finite mechanism followed by another: E[rest(ε - L)] under P."""

    def profile(epsilon: float) -> mpf:
        e = mpf(epsilon)
        return sum((p * rest(e - log(p / q)) if q else p for p, q in pair if p), mpf(0))

    return profile


def after_density(density: Callable, loss: Callable, points: Sequence[float], rest: Profile) -> Profile:
    """The same for a continuous outcome x; `points` splits the line, and between them `rest` must be smooth."""

    def profile(epsilon: float) -> mpf:
        with workdps(20):
            e = mpf(epsilon)
            return quad(lambda x: density(x) * rest(e - loss(x)), list(map(mpf, points)))

    return profile


def after_laplace(epsilon0: float, rest: Profile) -> Profile:
    """A Laplace mechanism, then another: two atoms at ±ε0 and a density between."""
    bound = mpf(epsilon0)

    def profile(epsilon: float) -> mpf:
        e = mpf(epsilon)
        ends = rest(e - bound) / 2 + exp(-bound) * rest(e + bound) / 2
        inside = after_density(lambda x: exp((x - bound) / 2) / 4, lambda x: x, [-bound, bound], rest)
        return ends + inside(e)

    return profile


def laplace_repeated(epsilon0: float, count: int) -> Profile:
    """`count` Laplace mechanisms: each loss is +ε0, -ε0 or, e^(l/2)-tilted, uniform between (Irwin and Hall)."""
    bound = mpf(epsilon0)

    def uniform_sum(terms: int, s: mpf) -> mpf:
        x = (s / bound + terms) / 2
        steps = ((-1) ** j * binomial(terms, j) * (x - j) ** (terms - 1) for j in range(int(x) + 1))
        return (2 * bound) ** (terms - 1) * sum(steps, mpf(0)) / factorial(terms - 1)

    def spread_out(terms: int, e: mpf) -> mpf:
        if not terms:
            return max(mpf(0), -expm1(e))
        knots = [bound * (2 * j - terms) for j in range(terms + 1)]
        inside = [max(e, knots[0]), *(knot for knot in knots[1:] if knot > e)]
        if len(inside) < 2:
            return mpf(0)
        tilted = lambda s: exp((s - terms * bound) / 2) * uniform_sum(terms, s) * -expm1(e - s)  # noqa: E731
        return quad(tilted, inside) / mpf(4) ** terms

    def profile(epsilon: float) -> mpf:
        with workdps(25):
            total = mpf(0)
            for up, terms in tuples(range(count + 1), repeat=2):
                down = count - up - terms
                if down >= 0:
                    ways = factorial(count) / factorial(up) / factorial(terms) / factorial(down)
                    mass = ways * mpf("0.5") ** (up + down) * exp(-down * bound)
                    total += mass * spread_out(terms, mpf(epsilon) - (up - down) * bound)
            return total

    return profile


def after_sampled_gaussian(sigma: float, rate: float, direction: str, rest: Profile) -> Profile:
    """A Poisson-sampled Gaussian, then another mechanism, in the "remove" or the "add" direction."""
    s, r = mpf(sigma), mpf(rate)
    points = [-12 * s, -4 * s, 0, 1, 1 + 4 * s, 1 + 12 * s]
    if direction == "remove":
        return after_density(
            lambda x: (1 - r) * npdf(x, 0, s) + r * npdf(x, 1, s),
            lambda x: log1p(r * expm1((2 * x - 1) / (2 * s * s))),
            points,
            rest,
        )
    return after_density(
        lambda x: npdf(x, 0, s), lambda x: -log1p(r * expm1((2 * x - 1) / (2 * s * s))), points, rest
    )


def renyi_between(p: Callable, q: Callable, order: float, points: Sequence[float]) -> mpf:
    """Rényi divergence of two densities, by quadrature."""
    with workdps(20):
        a = mpf(order)
        return log(quad(lambda x: p(x) ** a * q(x) ** (1 - a), list(map(mpf, points)))) / (a - 1)


def renyi_sampled_gaussian(sigma: float, rate: float, order: float, direction: str) -> mpf:
    """Rényi divergence of the Poisson-sampled Gaussian in one direction."""
    s, r, a = mpf(sigma), mpf(rate), mpf(order)

    def alone(x: mpf) -> mpf:
        return npdf(x, 0, s)

    def mixed(x: mpf) -> mpf:
        return (1 - r) * npdf(x, 0, s) + r * npdf(x, 1, s)

    p, q = (mixed, alone) if direction == "remove" else (alone, mixed)
    points = [-a - 12 * s, -4 * s, 0, 1, a / 2, a, a + 4 * s, a + 16 * s]
    return renyi_between(p, q, order, sorted(points))


# --- closed Rényi divergences -----------------------------------------------------------------------


def renyi_gaussian(mu: float, order: float) -> mpf:
    return mpf(order) * mpf(mu) ** 2 / 2


def renyi_laplace(epsilon0: float, order: float) -> mpf:
    e, a = mpf(epsilon0), mpf(order)
    return log(a / (2 * a - 1) * exp((a - 1) * e) + (a - 1) / (2 * a - 1) * exp(-a * e)) / (a - 1)


def renyi_two_gaussians(shift: float, ratio: float, order: float) -> mpf:
    """N(0, ratio²) against N(shift, 1): infinite from order ratio²/(ratio²-1) on."""
    d, s, a = mpf(shift), mpf(ratio), mpf(order)
    variance = a + (1 - a) * s * s
    if variance <= 0:
        return inf
    return a * d * d / (2 * variance) + log(sqrt(variance) / s ** (1 - a)) / (1 - a)
