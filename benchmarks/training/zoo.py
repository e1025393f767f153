# SPDX-License-Identifier: Apache-2.0
"""Small models of many architectures, from configurations alone: nothing is downloaded.

`HUGGING_FACE` and `TORCHVISION` have, by name, a function that makes a model and the kind of its records. BatchNorm is
replaced by GroupNorm, because it mixes records; two models are as their documentation says for training on their own
data: the experts of Mixtral in batched products, the feature encoder of wav2vec 2.0 frozen.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

# torchvision's operators are compiled for another build of torch; the models do not use them.
sys.modules.setdefault("torchvision._meta_registrations", types.ModuleType("_meta_registrations"))

import transformers as hf  # noqa: E402
from torchvision import models as vision  # noqa: E402

Made = tuple[nn.Module, str]
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
TEXT = {"vocab_size": 99, **SIZES}
IMAGE = {"image_size": 32, "patch_size": 8, **SIZES}
LONG = {"max_position_embeddings": 40}
FEW = {"num_key_value_heads": 2}


def _classifier(name: str, **settings: object) -> Callable[[], Made]:
    def make() -> Made:
        config = getattr(hf, f"{name}Config")(num_labels=3, **settings)
        for token in ("pad", "bos", "eos"):  # some configurations lack what their models read
            if getattr(config, f"{token}_token_id", None) is None:
                setattr(config, f"{token}_token_id", 0 if token == "pad" else None)
        return getattr(hf, f"{name}ForSequenceClassification")(config), "text"

    return make


def _language(name: str, head: str = "CausalLM", **settings: object) -> Callable[[], Made]:
    kind = "pair" if head == "ConditionalGeneration" else "language"
    return lambda: (getattr(hf, f"{name}For{head}")(getattr(hf, f"{name}Config")(**settings)), kind)


def _gpt2() -> Made:
    return hf.GPT2LMHeadModel(
        hf.GPT2Config(vocab_size=99, n_embd=32, n_layer=2, n_head=4, n_positions=40)
    ), "language"


def _images(name: str, **settings: object) -> Callable[[], Made]:
    return lambda: (
        getattr(hf, f"{name}ForImageClassification")(getattr(hf, f"{name}Config")(num_labels=3, **settings)),
        "image",
    )


def _wave() -> Made:
    config = hf.Wav2Vec2Config(
        **SIZES,
        conv_dim=(16, 16),
        conv_stride=(5, 4),
        conv_kernel=(10, 8),
        num_feat_extract_layers=2,
        num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=2,
        num_labels=3,
    )
    model = hf.Wav2Vec2ForSequenceClassification(config)
    model.freeze_feature_encoder()
    return model, "wave"


RELATIVE = {"relative_attention": True, "pos_att_type": ["p2c", "c2p"]}
HUGGING_FACE: dict[str, Callable[[], Made]] = {
    "BERT": _classifier("Bert", **TEXT),
    "RoBERTa": _classifier("Roberta", **TEXT, **LONG),
    "DistilBERT": _classifier("DistilBert", vocab_size=99, dim=32, n_layers=2, n_heads=4, hidden_dim=64),
    "ALBERT": _classifier("Albert", **TEXT, embedding_size=16),
    "ELECTRA": _classifier("Electra", **TEXT, embedding_size=16),
    "DeBERTa": _classifier("Deberta", **TEXT, **RELATIVE, max_relative_positions=8),
    "DeBERTa-v2": _classifier(
        "DebertaV2", **TEXT, **RELATIVE, position_buckets=8, norm_rel_ebd="layer_norm", share_att_key=True
    ),
    "MPNet": _classifier("MPNet", **TEXT, **LONG),
    "XLNet": _classifier("XLNet", vocab_size=99, d_model=32, n_layer=2, n_head=4, d_inner=64),
    "Funnel": _classifier(
        "Funnel", vocab_size=99, block_sizes=[1, 1], d_model=32, n_head=4, d_head=8, d_inner=64
    ),
    "GPT-2": _gpt2,
    "GPT-Neo": _language(
        "GPTNeo",
        vocab_size=99,
        hidden_size=32,
        num_layers=2,
        num_heads=4,
        attention_types=[[["global", "local"], 1]],
        **LONG,
    ),
    "GPT-NeoX": _language("GPTNeoX", **TEXT),
    "OPT": _language(
        "OPT",
        vocab_size=99,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        ffn_dim=64,
        word_embed_proj_dim=32,
        **LONG,
    ),
    "BLOOM": _language("Bloom", vocab_size=99, hidden_size=32, n_layer=2, n_head=4),
    "Llama": _language("Llama", **TEXT),
    "Mistral": _language("Mistral", **TEXT, **FEW),
    "Qwen2": _language("Qwen2", **TEXT, **FEW),
    "Gemma": _language("Gemma", **TEXT, **FEW, head_dim=8),
    "Phi": _language("Phi", **TEXT),
    "Mixtral": _language("Mixtral", **TEXT, **FEW, num_local_experts=4, experts_implementation="batched_mm"),
    "Mamba": _language("Mamba", vocab_size=99, hidden_size=32, num_hidden_layers=2, state_size=4),
    "T5": _language(
        "T5",
        "ConditionalGeneration",
        vocab_size=99,
        d_model=32,
        d_kv=8,
        d_ff=64,
        num_layers=2,
        num_heads=4,
        decoder_start_token_id=0,
    ),
    "BART": _language(
        "Bart",
        "ConditionalGeneration",
        vocab_size=99,
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        **LONG,
    ),
    "ViT": _images("ViT", **IMAGE),
    "DeiT": _images("DeiT", **IMAGE),
    "BEiT": _images("Beit", **IMAGE, use_relative_position_bias=True),
    "Swin": _images(
        "Swin", image_size=32, patch_size=4, embed_dim=16, depths=[2, 2], num_heads=[2, 2], window_size=4
    ),
    "ConvNeXt": _images("ConvNext", hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], image_size=32),
    "wav2vec 2.0": _wave,
}

_SIDES = {
    "alexnet": 63, "vgg11": 32, "resnet18": 32, "resnext50_32x4d": 32, "squeezenet1_1": 32, "densenet121": 32,
    "googlenet": 64, "inception_v3": 96, "shufflenet_v2_x0_5": 32, "mobilenet_v2": 32, "mobilenet_v3_small": 32,
    "mnasnet0_5": 32, "regnet_y_400mf": 32, "efficientnet_b0": 32, "efficientnet_v2_s": 32, "convnext_tiny": 32,
    "vit_b_16": 32, "swin_t": 32, "swin_v2_t": 32, "maxvit_t": 224,
}  # fmt: skip
_EXTRA: dict[str, dict[str, object]] = {
    "vit_b_16": {"image_size": 32},
    "googlenet": {"aux_logits": False, "init_weights": False},
    "inception_v3": {"aux_logits": False, "init_weights": False},
    "maxvit_t": {"input_size": (224, 224)},
}


def _replace_batch_norms(module: nn.Module) -> nn.Module:
    for name, child in list(module.named_children()):
        if isinstance(child, nn.BatchNorm2d):
            setattr(module, name, nn.GroupNorm(1, child.num_features))
        else:
            _replace_batch_norms(child)
    return module


def _vision(name: str) -> Callable[[], Made]:
    def make() -> Made:
        model = getattr(vision, name)(num_classes=3, **_EXTRA.get(name, {}))
        return _replace_batch_norms(model), f"pixels {_SIDES[name]}"

    return make


TORCHVISION = {name: _vision(name) for name in _SIDES}


def records(kind: str, count: int) -> tuple[Tensor, Tensor]:
    """Made-up records of a kind, and what is to be predicted."""
    generator = torch.Generator().manual_seed(3)
    labels = torch.randint(0, 3, (count,), generator=generator)
    ids = torch.randint(2, 99, (count, 10), generator=generator)
    if kind == "text":
        return ids, labels
    if kind == "language":
        return ids, ids
    if kind == "pair":
        return ids, ids.flip(1)
    if kind == "wave":
        return torch.randn(count, 800, generator=generator).double(), labels
    side = int(kind.split()[1]) if " " in kind else 32
    return torch.randn(count, 3, side, side, generator=generator).double(), labels


def losses(model: nn.Module, kind: str, x: Tensor, y: Tensor) -> Tensor:
    """One loss for each record."""
    if kind.startswith("pixels"):
        return functional.cross_entropy(model(x), y, reduction="none")
    out = model(input_ids=x, decoder_input_ids=y) if kind == "pair" else model(x)
    logits = out.logits
    if logits.dim() == 2:
        return functional.cross_entropy(logits, y, reduction="none")
    return functional.cross_entropy(logits[:, :-1].mT, y[:, 1:], reduction="none").mean(1)
