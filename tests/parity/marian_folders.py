"""Small MarianMT folders as Hugging Face's own library writes them: random weights, real SentencePiece models."""

import json
import random
import warnings

import torch

WORDS = [
    "haus",
    "maus",
    "the",
    "cat",
    "sat",
    "über",
    "straße",
    "l'été",
    "naïve",
    "mañana",
    "москва",
    "привет",
    "北京",
    "12",
    "3.5",
]
LONGEST = 24  # tokens of an output, the start counted
LETTERS = "abcdefghijklmnop"
STRANGE = [
    "abc éàüñ",
    "ＡＢＣ１２　！",
    "😀👍🏽👨‍👩‍👧🇩🇪",
    "e\u0301a\u0300n\u0303\u0301",
    "カ゛がｶﾞ한국\u1112\u1161\u11ab",
    "\t\u00a0\u200b\u2009\ufeff\u00ad  ",
    "ﬁﬂ½²™℃㌔㈱",
    "ไทยน้ำใจदेवनागरीعَرَبِي",
    "▁▁ ab",
    "„“‚’…—–<0x41>⟨pad⟩ ⟨ pad ⟩",
]


def transformers():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a third party says while it is imported
        import transformers

        transformers.MarianTokenizer  # noqa: B018 - loaded when it is first asked for
    transformers.utils.logging.set_verbosity_error()
    return transformers


def sentences(count, seed):
    """Words of the training text and others."""
    chance = random.Random(seed)
    made = WORDS + ["".join(chance.choice(LETTERS) for _ in range(chance.randint(1, 7))) for _ in range(173)]
    return [" ".join(chance.choice(made) for _ in range(chance.randint(2, 11))) for _ in range(count)]


def strange_texts(count, seed):
    """Text with characters that the models have never seen, spaces, emoji, full width, accents."""
    chance = random.Random(seed)
    texts = []
    for _ in range(count):
        pools = [chance.choice(STRANGE) for _ in range(chance.randint(1, 6))]
        text = "".join(chance.choice(pool) for pool in pools for _ in range(chance.randint(1, 6)))
        if chance.random() < 0.1:
            ranges = ((1, 0x2FFF), (0x3000, 0xD7FF), (0xE000, 0x1FFFF))
            text += "".join(chr(chance.randint(*chance.choice(ranges))) for _ in range(13))
        texts.append(text.replace("\n", " "))
    return texts


def train_spm(folder, name, *, seed, vocab_size, **settings):
    import sentencepiece

    text = folder / f"{name}.txt"
    text.write_text("".join(line + "\n" for line in sentences(1500, seed)), encoding="utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(text),
        model_prefix=str(folder / name),
        vocab_size=vocab_size,
        character_coverage=0.999,
        num_threads=1,
        minloglevel=2,
        **settings,
    )
    text.unlink()
    (folder / f"{name}.vocab").unlink()
    (folder / f"{name}.model").rename(folder / f"{name}.spm")


def pieces_of(path):
    import sentencepiece

    model = sentencepiece.SentencePieceProcessor(model_file=str(path))
    return [
        model.id_to_piece(place)
        for place in range(model.get_piece_size())
        if not model.is_control(place) and not model.is_unknown(place)
    ]


def build_folder(folder, *, same_spm=False, separate=False, extra_words=(), dropped=0, padded=0, seed=1, **changes):
    """Write one; ``dropped`` pieces of the source model are missing in vocab.json, ``padded`` rows have no word."""
    library = transformers()
    folder.mkdir(parents=True, exist_ok=True)
    train_spm(folder, "source", seed=seed, vocab_size=211)
    if same_spm:
        (folder / "target.spm").write_bytes((folder / "source.spm").read_bytes())
    else:
        train_spm(folder, "target", seed=seed + 1, vocab_size=193)
    source, target = pieces_of(folder / "source.spm"), pieces_of(folder / "target.spm")
    source = source[: len(source) - dropped]
    chance = random.Random(seed)

    def words_of(pieces):
        pieces = sorted(set(pieces))
        chance.shuffle(pieces)
        words = ["</s>", "<unk>", *pieces, *extra_words, "<pad>"]
        return {word: place for place, word in enumerate(words)}

    words = words_of(source if separate else source + target)
    target_words = words_of(target) if separate else words
    if separate:  # one id for padding on both sides, as config.json has but one
        longer = max(len(words), len(target_words)) - 1
        for known in (words, target_words):
            known["<pad>"] = longer
            known |= {f"spare{place}": place for place in range(len(known) - 1, longer)}
    size = max(words.values()) + 1 + padded
    target_size = max(target_words.values()) + 1 + padded
    (folder / "vocab.json").write_text(json.dumps(words, ensure_ascii=False), encoding="utf-8")
    if separate:
        (folder / "target_vocab.json").write_text(json.dumps(target_words, ensure_ascii=False), encoding="utf-8")
    tokenizer_config = {
        "source_lang": "en",
        "target_lang": "de",
        "model_max_length": 128,
        "separate_vocabs": separate,
        "tokenizer_class": "MarianTokenizer",
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer_config))
    settings = {
        "vocab_size": size,
        "decoder_vocab_size": target_size,
        "d_model": 24,
        "encoder_layers": 2,
        "decoder_layers": 1,
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 2,
        "encoder_ffn_dim": 37,
        "decoder_ffn_dim": 37,
        "activation_function": "swish",
        "scale_embedding": True,
        "max_position_embeddings": 128,
        "pad_token_id": words["<pad>"],
        "decoder_start_token_id": words["<pad>"],
        "eos_token_id": 0,
        "forced_eos_token_id": 0,
        "share_encoder_decoder_embeddings": not separate,
        **changes,
    }
    torch.manual_seed(seed)
    model = library.MarianMTModel(library.MarianConfig(**settings)).eval()
    with torch.no_grad():  # its own tokenizer fails on a row without a word
        model.final_logits_bias[0, target_size - padded :] = -30
    excite(model)
    model.generation_config = library.GenerationConfig(
        bad_words_ids=[[words["<pad>"]]],
        num_beams=4,
        max_length=LONGEST,
        pad_token_id=words["<pad>"],
        decoder_start_token_id=settings["decoder_start_token_id"],
        eos_token_id=0,
        forced_eos_token_id=0,
    )
    model.save_pretrained(folder)
    return folder


def excite(model):
    """Numbers so large that every one of them counts, what comes from the source above all, so that outputs differ.

    The bias of EOS is the least with which most outputs end by themselves.
    """
    config = model.config
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_positions" in name:
                continue
            scale = 0.3 if parameter.dim() > 1 else 0.05
            parameter.add_(torch.randn(parameter.shape), alpha=scale)
            if parameter.shape[0] > 100:  # a table: no token is louder than another
                parameter.div_(parameter.norm(dim=1, keepdim=True))
        for layer in (*model.model.encoder.layers, *model.model.decoder.layers):
            layer.fc2.weight.mul_(0.2)  # an activation's mean is the same for all
        for layer in model.model.decoder.layers:
            layer.encoder_attn.out_proj.weight.mul_(5)
            layer.encoder_attn.q_proj.weight.mul_(9)
        model.final_logits_bias.add_(torch.randn(model.final_logits_bias.shape) * 0.1)
        model.final_logits_bias[0, config.pad_token_id] = 2.0  # it counts in the softmax, and never comes out
        source = torch.randint(2, min(config.vocab_size, config.decoder_vocab_size) - 9, (30, 7))
        for _ in range(60):
            output = model.generate(source, max_length=LONGEST, num_beams=1, do_sample=False)
            ended = (output[:, 1:-1] == config.eos_token_id).any(dim=1).float().mean()
            if ended > 0.6:
                break
            model.final_logits_bias[0, config.eos_token_id] += 0.5


def load(folder):
    library = transformers()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # sacremoses is recommended, and not used for encoding
        return library.MarianTokenizer.from_pretrained(folder), library.MarianMTModel.from_pretrained(folder).eval()


def their_greedy(model, tokenizer, texts, longest=LONGEST):
    """Token ids (EOS last) and text of each sentence."""
    found = []
    with torch.inference_mode():
        for start in range(0, len(texts), 25):
            batch = tokenizer(texts[start : start + 25], return_tensors="pt", padding=True)
            output = model.generate(**batch, num_beams=1, do_sample=False, max_length=longest)
            found += output[:, 1:].tolist()
    eos = model.config.eos_token_id
    ids = [row[: row.index(eos) + 1] if eos in row else row for row in found]
    return ids, tokenizer.batch_decode(ids, skip_special_tokens=True)
