"""A pipeline of diffusers with random weights, small enough for any CPU: `… FOLDER`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

WORDS = ["a", "fox", "in", "the", "snow", "night"]


def make(folder: Path) -> None:
    """Write the pipeline: Stable Diffusion's classes, a few thousand weights each."""
    import torch
    from diffusers import (
        AutoencoderKL,
        DDIMScheduler,
        StableDiffusionPipeline,
        UNet2DConditionModel,
    )
    from transformers import CLIPTextConfig, CLIPTextModel, CLIPTokenizer

    torch.manual_seed(0)
    unet = UNet2DConditionModel(
        block_out_channels=(8, 16),
        layers_per_block=1,
        norm_num_groups=4,
        sample_size=8,
        in_channels=4,
        out_channels=4,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        cross_attention_dim=16,
        attention_head_dim=4,
    )
    vae = AutoencoderKL(
        block_out_channels=[8, 8, 8, 8],
        in_channels=3,
        out_channels=3,
        down_block_types=["DownEncoderBlock2D"] * 4,
        up_block_types=["UpDecoderBlock2D"] * 4,
        latent_channels=4,
        norm_num_groups=4,
        sample_size=64,
    )
    text = CLIPTextConfig(
        hidden_size=16,
        intermediate_size=16,
        num_attention_heads=2,
        num_hidden_layers=1,
        vocab_size=1000,
        max_position_embeddings=77,
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=1,
    )
    StableDiffusionPipeline(
        unet=unet,
        vae=vae,
        text_encoder=CLIPTextModel(text),
        tokenizer=CLIPTokenizer.from_pretrained(_vocabulary(folder / "words")),
        scheduler=DDIMScheduler(),
        safety_checker=None,
        feature_extractor=None,
        requires_safety_checker=False,
    ).save_pretrained(folder, safe_serialization=True)


def _vocabulary(folder: Path) -> Path:
    folder.mkdir(parents=True)
    tokens = ["<|startoftext|>", "<|endoftext|>", *(f"{word}</w>" for word in WORDS)]
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    tokens += [*letters, *(f"{letter}</w>" for letter in letters if letter != "a")]
    numbered = {token: number for number, token in enumerate(tokens)}
    (folder / "vocab.json").write_text(json.dumps(numbered))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "CLIPTokenizer", "model_max_length": 77})
    )
    return folder


if __name__ == "__main__":
    make(Path(sys.argv[1]))
