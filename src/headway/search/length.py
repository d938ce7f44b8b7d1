"""How length enters the score of a hypothesis."""


def length_penalty(length: int, alpha: float) -> float:
    """``((5 + length) / 6) ** alpha``, where ``length`` counts the target tokens with EOS.

    A hypothesis scores log_prob / penalty. Log-probabilities are negative, so a larger ``alpha`` favours longer
    outputs; 0 is neutral (the score is the log-probability), the paper takes 0.6. Length 1 has penalty 1 always.
    Source: Wu et al. 2016, equation 14, without the coverage term; Section 6.1 of the paper.
    """
    return ((5 + length) / 6) ** alpha
