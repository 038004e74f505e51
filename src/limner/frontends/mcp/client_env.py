"""An environment -> the names in it that limner reads, for clients that hide all others."""

from __future__ import annotations

from collections.abc import Collection

from limner.client import Limner


def passed_on(environment: Collection[str]) -> set[str]:
    """The names of limner's own variables, and of keys and addresses of services, that are set.

    Raises:
        SettingsError: the settings are wrong.
    """
    lim = Limner()
    known = {name for spec in lim.specs.values() for name in (spec.key_env, spec.base_url_env)}
    known |= {name for spec in lim.specs.values() for name in spec.variables}
    known |= {name for model in lim.models.known() for name in (model.key_env, model.base_url_from)}
    return {name for name in environment if name in known or name.startswith("LIMNER_")}
