"""Draw a picture, ask about it, and see what it would cost each model to look at it."""

import limner

drawn = limner.generate("a fox under the moon")
print(drawn.path)

# Without a key limner/eyes answers from what can be measured; with one, a vision model does.
seen = limner.inspect(drawn.path, "How large is it, and which colours does it have?")
print(seen.details["model"], "says:", seen.text.splitlines()[0])

for model in ("openai/gpt-5.5", "anthropic/claude-haiku-4-5", "google/gemini-3.8-flash"):
    fitted = limner.fit(drawn.path, model=model)
    print(model, fitted.mime, f"{fitted.width}x{fitted.height}", fitted.tokens, fitted.cost_usd)
