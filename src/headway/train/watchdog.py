"""What looks wrong with a run, in one plain line each: the number seen, what it means, what to do.

A kind of trouble is a row of ``KINDS`` (``train/kinds.py``). A model that has learnt little repeats itself and stops
too late, and that is no fault; so what its outputs show counts only past the warm-up, and either at two validations
running, or, for a grave case, once the model has learnt (``LEARNT``).
"""

import math
from functools import cached_property

from headway.config.learning_rate import peak_rate
from headway.metrics.outputs import count_outputs
from headway.metrics.writing import mismatch
from headway.train.events import Signs, StepDone, Warned
from headway.train.history import History, Step
from headway.train.kinds import AT_START, find
from headway.train.look import Look, expected_bleu, unigram_nll, words_of
from headway.train.metrics_log import METRICS_FILE
from headway.train.score_faults import shortfall
from headway.train.session import Session
from headway.train.text_faults import overlap_trouble
from headway.train.tree_faults import label_trouble
from headway.train.trouble import Trouble
from headway.train.validate import Seen, Validation

WORSE = 1.5  # times the value last told: a line is told again


class Watchdog:
    """Looks at each validation of a run and says what is new; what it knows is the history.

    Of several processes the first one judges, for it alone has the history, and all tell the same.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._history = History.read(session.folder / METRICS_FILE) if session.group.is_first else History()

    def begin(self) -> list[Warned]:
        """What is known before the first step: validation text that is trained on, labels that mix. All ranks ask."""
        prepared, config = self._session.prepared, self._session.config
        overlap = overlap_trouble(prepared.report.validation_overlap, config=config)
        is_held = config.is_parser and config.parsing.constrained
        labels = label_trouble(self._session.store, prepared.target_tokenizer) if is_held else None
        troubles = zip(AT_START, (overlap, labels), strict=True)
        found = {kind: trouble for kind, trouble in troubles if trouble is not None}
        return self._session.group.share(self._told(0, found))

    def step(self, event: StepDone) -> None:
        """Take note of a step."""
        if self._session.group.is_first:
            self._history.add(Step.of_event(event))

    def look(self, validation: Validation) -> tuple[Signs | None, list[Warned]]:
        """The numbers of a validation, and what there is to say of them. All ranks ask."""
        group = self._session.group
        return group.share(self._judge(validation) if group.is_first else (None, []))

    def _judge(self, validation: Validation) -> tuple[Signs, list[Warned]]:
        look = self._look(validation, validation.seen)
        told = self._told(look.signs.step, find(look))
        self._history.end_of_validation(look.signs)
        return look.signs, told

    def _told(self, step: int, found: dict[str, Trouble]) -> list[Warned]:
        """What has not been told, or has become materially worse since."""
        told: list[Warned] = []
        for kind, trouble in found.items():
            earlier = self._history.told.get(kind)
            if earlier is None or trouble.again or trouble.value >= WORSE * earlier:
                told.append(Warned(step, kind, trouble.text, trouble.value))
                self._history.told[kind] = trouble.value
        return told

    def _look(self, validation: Validation, seen: Seen) -> Look:
        session, history, config = self._session, self._history, self._session.config
        report, scores = session.prepared.report, validation.scores
        counts = count_outputs(seen.sources, seen.references, seen.translations)
        apart = mismatch(seen.references, seen.translations, is_cased=not config.evaluate.lowercase)
        words, expected = 0.0, 0.0
        if seen.references:
            words = words_of(seen.references, config.evaluate, target_language=config.data.target_language)
            tokens = report.validation.target_tokens / max(report.validation.pairs, 1)
            expected = expected_bleu(seen.accuracy, tokens=tokens, words=words)
        signs = Signs(
            step=scores.step,
            nll=seen.nll,
            token_accuracy=seen.accuracy,
            outputs=counts.num,
            empty=counts.empty,
            looping=counts.looping,
            same=counts.same,
            copied=counts.copied,
            cut=seen.cut,
            unknown=seen.unknown,
            length_ratio=seen.length_ratio,
            mismatch=0.0 if apart is None else apart.share,
            focus=None if seen.focus is None else seen.focus.share,
            training_nll=history.training_nll(),
            gradient_norm=history.gradient_norm(),
            peak_rate=history.peak_rate,
            spikes=len(history.spikes),
            bleu_shortfall=shortfall(scores.bleu or 0.0, expected),
        )
        return Look(
            config=config,
            history=history,
            signs=signs,
            scores=scores,
            seen=seen,
            counts=counts,
            mismatch=apart,
            overlap=report.validation_overlap,
            unigram=self._unigram,
            uniform=math.log(len(report.labels) or report.target_vocab_size),
            words=words,
            expected_bleu=expected,
            peak=peak_rate(session.model_config.d_model, config.train.warmup_steps, given=config.train.learning_rate),
        )

    @cached_property
    def _unigram(self) -> float:
        return unigram_nll(self._session.store, has_ends=self._session.config.train.objective == "target")
