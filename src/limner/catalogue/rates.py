"""Counted tokens -> their cost in nano-dollars, by the list price of a model."""

from decimal import Decimal

import msgspec

from limner.catalogue.prices import TOKENS_PER_PRICE
from limner.dollars import usd_to_nano


class _Prices(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Dollars for a million tokens of each kind; cached tokens cost as input by default."""

    input_usd: Decimal
    output_usd: Decimal
    cache_read_usd: Decimal | None = None
    cache_write_usd: Decimal | None = None

    def total(self, *, fresh: int, cache_read: int, cache_write: int, output: int) -> int:
        """The cost of the tokens of each kind, in nano-dollars, rounded up."""
        counts = (
            (fresh, self.input_usd),
            (cache_read, self.cache_read_usd),
            (cache_write, self.cache_write_usd),
            (output, self.output_usd),
        )
        total = sum(
            count * usd_to_nano(self.input_usd if price is None else price)
            for count, price in counts
        )
        return -(-total // TOKENS_PER_PRICE)


class LongPromptRate(_Prices, frozen=True, kw_only=True):
    """The rate of a whole request whose prompt has more than ``above_tokens``."""

    above_tokens: int


class Rate(_Prices, frozen=True):
    """The price of tokens; the tokens of a picture are normal input tokens."""

    long_prompt: LongPromptRate | None = None

    def cost(
        self,
        *,
        input_tokens: int,
        output_tokens: int = 0,
        cache_read_tokens: int = 0,
        cache_write_tokens: int = 0,
    ) -> int:
        """The cost of one request, in nano-dollars; cached tokens are part of the input."""
        fresh = max(0, input_tokens - cache_read_tokens - cache_write_tokens)
        return self._prices(input_tokens).total(
            fresh=fresh,
            cache_read=cache_read_tokens,
            cache_write=cache_write_tokens,
            output=output_tokens,
        )

    def most(self, *, input_tokens: int, output_tokens: int) -> int:
        """The highest cost of one request, whatever the service's cache does."""
        prices = self._prices(input_tokens)
        dearest = max(prices.input_usd, prices.cache_write_usd or prices.input_usd)
        return msgspec.structs.replace(prices, input_usd=dearest).total(
            fresh=input_tokens, cache_read=0, cache_write=0, output=output_tokens
        )

    def _prices(self, input_tokens: int) -> _Prices:
        long = self.long_prompt
        return self if long is None or input_tokens <= long.above_tokens else long


# Reserved for a model whose price is not known: the price of the most expensive listed model.
UNKNOWN_RATE = Rate(input_usd=Decimal("12.5"), output_usd=Decimal(50))
