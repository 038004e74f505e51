"""Provider names -> their specs: the built-in table and the installed plug-ins.

The table is data. It names the class of each provider, and the class is imported when the first
request needs it. A package can add a provider: it names a ``ProviderSpec`` under the entry-point
group ``limner.providers``.
"""

from __future__ import annotations

import logging
from importlib import import_module

import msgspec

from limner.catalogue.images import image_models, other_image_model
from limner.plugin_loader import LoadedPlugins, load_plugins
from limner.providers.base import Connection, Provider, ProviderSpec

ENTRY_POINT_GROUP = "limner.providers"


class _LazyClass(msgspec.Struct, frozen=True):
    """A provider's class as ``module:name``, imported when it is called."""

    reference: str

    def __call__(self, connection: Connection) -> Provider:
        module, _, name = self.reference.partition(":")
        return getattr(import_module(f"limner.providers.{module}"), name)(connection)


_ROWS = (
    ProviderSpec(
        name="openai-dalle",
        title="OpenAI",
        key_env="OPENAI_API_KEY",
        base_url_env="OPENAI_BASE_URL",
        base_url="https://api.openai.com/v1",
        account_url="https://platform.openai.com/usage",
        models=image_models("openai-dalle"),
        build=_LazyClass("openai:OpenAIDalle"),
    ),
    ProviderSpec(
        name="openai-image",
        title="OpenAI",
        key_env="OPENAI_API_KEY",
        base_url_env="OPENAI_BASE_URL",
        base_url="https://api.openai.com/v1",
        account_url="https://platform.openai.com/usage",
        models=image_models("openai-image"),
        build=_LazyClass("openai:OpenAIImage"),
    ),
    ProviderSpec(
        name="replicate-flux",
        title="Replicate",
        key_env="REPLICATE_API_TOKEN",
        base_url_env="REPLICATE_BASE_URL",
        base_url="https://api.replicate.com/v1",
        account_url="https://replicate.com/account/billing",
        models=image_models("replicate-flux"),
        build=_LazyClass("replicate_flux:ReplicateFlux"),
    ),
    ProviderSpec(
        name="gemini-image",
        title="Google",
        key_env="GEMINI_API_KEY",
        base_url_env="GEMINI_BASE_URL",
        base_url="https://generativelanguage.googleapis.com",
        account_url="https://aistudio.google.com/usage",
        models=image_models("gemini-image"),
        build=_LazyClass("gemini_image:GeminiImage"),
    ),
    ProviderSpec(
        name="bfl-flux",
        title="Black Forest Labs",
        key_env="BFL_API_KEY",
        base_url_env="BFL_BASE_URL",
        base_url="https://api.bfl.ai/v1",
        account_url="https://dashboard.bfl.ai",
        models=image_models("bfl-flux"),
        build=_LazyClass("bfl_flux:BflFlux"),
    ),
    ProviderSpec(
        name="fal",
        title="fal",
        key_env="FAL_KEY",
        base_url_env="FAL_BASE_URL",
        base_url="https://queue.fal.run",
        account_url="https://fal.ai/dashboard/billing",
        models=image_models("fal"),
        other_model=other_image_model("fal"),
        build=_LazyClass("fal:Fal"),
    ),
    ProviderSpec(
        name="openrouter",
        title="OpenRouter",
        key_env="OPENROUTER_API_KEY",
        base_url_env="OPENROUTER_BASE_URL",
        base_url="https://openrouter.ai/api/v1",
        account_url="https://openrouter.ai/activity",
        models=image_models("openrouter"),
        other_model=other_image_model("openrouter"),
        build=_LazyClass("openrouter:OpenRouter"),
    ),
    ProviderSpec(
        name="replicate",
        title="Replicate",
        key_env="REPLICATE_API_TOKEN",
        base_url_env="REPLICATE_BASE_URL",
        base_url="https://api.replicate.com/v1",
        account_url="https://replicate.com/account/billing",
        models=image_models("replicate"),
        other_model=other_image_model("replicate"),
        named_only=True,
        build=_LazyClass("replicate:Replicate"),
    ),
    ProviderSpec(
        name="openai-compatible",
        title="openai-compatible",
        key_env="OPENAI_COMPATIBLE_API_KEY",
        key_optional=True,
        base_url_env="OPENAI_COMPATIBLE_BASE_URL",
        base_url="",
        models=image_models("openai-compatible"),
        other_model=image_models("openai-compatible")[0],
        named_only=True,
        build=_LazyClass("openai_compatible:OpenAICompatible"),
    ),
    ProviderSpec(
        name="sd-webui",
        title="Stable Diffusion WebUI",
        key_env="SD_WEBUI_AUTH",
        key_optional=True,
        base_url_env="SD_WEBUI_BASE_URL",
        base_url="http://127.0.0.1:7860",
        models=image_models("sd-webui"),
        other_model=image_models("sd-webui")[0],
        named_only=True,
        build=_LazyClass("sd_webui:SdWebui"),
    ),
    ProviderSpec(
        name="comfyui",
        title="ComfyUI",
        key_env=None,
        base_url_env="COMFYUI_BASE_URL",
        base_url="http://127.0.0.1:8188",
        variables=("COMFYUI_WORKFLOW", "COMFYUI_EDIT_WORKFLOW"),
        models=image_models("comfyui"),
        other_model=image_models("comfyui")[0],
        named_only=True,
        build=_LazyClass("comfyui:ComfyUI"),
    ),
    ProviderSpec(
        name="diffusers",
        title="diffusers",
        key_env=None,
        base_url_env=None,
        base_url="",
        variables=("DIFFUSERS_MODEL", "DIFFUSERS_DEVICE"),
        models=image_models("diffusers"),
        models_are_folders=True,
        other_model=image_models("diffusers")[0],
        named_only=True,
        build=_LazyClass("diffusers:Diffusers"),
    ),
)
# `auto` prefers the earlier row.
BUILT_IN = {spec.name: spec for spec in _ROWS}
# `auto` chooses it only if no other provider has its key.
ILLUSTRATOR = ProviderSpec(
    name="illustrator",
    title="The illustrator",
    key_env=None,
    base_url_env=None,
    base_url="",
    models=image_models("illustrator"),
    build=_LazyClass("illustrator:build"),
)


def all_specs(*, embedded: bool) -> dict[str, ProviderSpec]:
    """Every provider by name, in the order in which `auto` tries them."""
    plugins = load_provider_plugins()
    for broken in plugins.broken:
        logging.getLogger("limner.providers").warning(
            "The provider %r cannot be loaded: %s", broken.name, broken.reason
        )
    specs = {**BUILT_IN, **{spec.name: spec for spec in plugins.usable}}
    if embedded:
        specs[ILLUSTRATOR.name] = ILLUSTRATOR
    return specs


def load_provider_plugins() -> LoadedPlugins[ProviderSpec]:
    """The providers of installed packages. A name can be used once."""
    taken = {*BUILT_IN, ILLUSTRATOR.name}

    def check(spec: object) -> ProviderSpec:
        if not isinstance(spec, ProviderSpec):
            raise TypeError(f"it is a {type(spec).__name__}, not a ProviderSpec")
        if spec.name in taken:
            raise ValueError(f"there is another provider {spec.name}")
        if not spec.models:
            raise ValueError(f"the provider {spec.name} has no model")
        taken.add(spec.name)
        return spec

    return load_plugins(ENTRY_POINT_GROUP, check)
