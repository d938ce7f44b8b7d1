"""What a model makes of a text, sentence by sentence, in numbers that add up: BLEU's counts, and a forced pass's.

Shapes: N sentences, C counts of one, B sentences of a batch, T target positions.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from headway.checkpoint.average import average_weights
from headway.checkpoint.keep import weights_path
from headway.checkpoint.run_folder import RunFolder, longest_source, real_model
from headway.data.batch import Batch
from headway.metrics.perplexity import perplexity
from headway.metrics.sentence_bleu import NUM_COUNTS, bleu_counts, bleu_of
from headway.metrics.translation import choose_tokenizer
from headway.model.build import build_transformer, load_weights
from headway.model.transformer import Transformer
from headway.text.tokenizer import BOS_ID, EOS_ID, PAD_ID, Tokenizer
from headway.translate.backend import model_backend
from headway.translate.translator import Translator, longest_output

Counts = NDArray[np.float64]
LOG_PROB, TOKENS, RIGHT, WORDS = range(NUM_COUNTS, NUM_COUNTS + 4)  # columns after those of BLEU
AT_ONCE = 32  # sentences of a forced pass


def bleu(sums: np.ndarray) -> float:
    """BLEU of the whole."""
    return bleu_of(sums[:NUM_COUNTS])


def token_perplexity(sums: np.ndarray) -> float:
    """Perplexity of a token of the target's vocabulary, without smoothing."""
    return perplexity(float(sums[LOG_PROB]), int(sums[TOKENS]))


def word_perplexity(sums: np.ndarray) -> float:
    """Perplexity of a word between spaces, which compares vocabularies."""
    return perplexity(float(sums[LOG_PROB]), int(sums[WORDS]))


def accuracy(sums: np.ndarray) -> float:
    """Percent of the tokens that are the most probable, given the right ones before."""
    return 100.0 * float(sums[RIGHT] / sums[TOKENS])


def load_model(run: RunFolder, steps: Sequence[int]) -> Transformer:
    """The mean of some steps' weights."""
    model = build_transformer(real_model(run.config, run.prepared))
    load_weights(model, average_weights([weights_path(run.weights_folder, step) for step in steps]))
    return model.eval()


def count_text(run: RunFolder, model: Transformer) -> Counts:
    """Translate the validation text, and force the model through its references: (N, C)."""
    config, prepared = run.config, run.prepared
    sources, references = prepared.texts("validation")
    device = torch.device("cpu")
    translator = Translator(
        model_backend(model, device),
        prepared.source_tokenizer,
        prepared.target_tokenizer,
        max_source_tokens=longest_source(prepared.store("train")),
        source_language=config.data.source_language,
        target_language=config.data.target_language,
        search=config.search,
        max_output_tokens=longest_output(real_model(config, prepared)),
    )
    counted = bleu_counts(
        [translation.text for translation in translator.translate(sources)],
        references,
        tokenize=choose_tokenizer(config.evaluate.tokenize, config.data.target_language, []),
        lowercase=config.evaluate.lowercase,
    )
    forced = forced_counts(
        model, sources, references, tokenizers=(prepared.source_tokenizer, prepared.target_tokenizer)
    )
    return np.concatenate([counted.astype(np.float64), forced], axis=1)


@torch.inference_mode()
def forced_counts(
    model: Transformer, sources: Sequence[str], references: Sequence[str], *, tokenizers: tuple[Tokenizer, Tokenizer]
) -> Counts:
    """Of each reference, its source given: log p (nats), tokens, tokens that are the most probable, and words: (N, 4).

    EOS counts as a token, and as a word.
    """
    encoded = [
        tokenizer.encode_batch([text.strip() for text in texts])
        for tokenizer, texts in zip(tokenizers, (sources, references), strict=True)
    ]
    rows: list[list[float]] = []
    for begin in range(0, len(sources), AT_ONCE):
        batch = _batch(*(side[begin : begin + AT_ONCE] for side in encoded))
        logits_BTV = model(batch.source_BS, batch.source_mask_BS, batch.target_in_BT).float()
        log_probs_BT = logits_BTV.log_softmax(dim=-1).gather(-1, batch.target_out_BT[..., None])[..., 0]
        real_BT = batch.target_out_BT != PAD_ID
        right_BT = (logits_BTV.argmax(dim=-1) == batch.target_out_BT) & real_BT
        sums = [log_probs_BT.double().where(real_BT, 0.0).sum(dim=1), real_BT.sum(dim=1), right_BT.sum(dim=1)]
        rows += torch.stack([each.double() for each in sums], dim=1).tolist()
    words = [len(reference.split()) + 1 for reference in references]
    return np.array([[*row, count] for row, count in zip(rows, words, strict=True)], dtype=np.float64).reshape(-1, 4)


def _batch(sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> Batch:
    return Batch(
        _padded([[*ids, EOS_ID] for ids in sources]),
        _padded([[BOS_ID, *ids] for ids in targets]),
        _padded([[*ids, EOS_ID] for ids in targets]),
    )


def _padded(rows: Sequence[Sequence[int]]) -> torch.Tensor:
    longest = max(len(row) for row in rows)
    return torch.tensor([[*row, *[PAD_ID] * (longest - len(row))] for row in rows])
