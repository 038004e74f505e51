"""An environment -> the variables that limner reads, for clients that pass on no others."""

from __future__ import annotations

from collections.abc import Collection

from limner.client import Limner


def passed_on(environment: Collection[str]) -> set[str]:
    """Return the variables that are set: limner's own, and keys and base URLs of providers.

    Raises:
        SettingsError: the settings are wrong.
    """
    lim = Limner()
    known = {name for spec in lim.specs.values() for name in (spec.key_env, spec.base_url_env)}
    known |= {name for spec in lim.specs.values() for name in spec.variables}
    known |= {name for model in lim.models.known() for name in (model.key_env, model.base_url_from)}
    return {name for name in environment if name in known or name.startswith("LIMNER_")}
