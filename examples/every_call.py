"""Every call of `import limner` once, offline; the Python reference shows these blocks."""

from pathlib import Path

import limner

# limner.generate
fox = limner.generate("a fox in the snow", size="512x512", output_path="fox.png")
print(fox.path, fox.cost_usd)

# limner.quote
plan = limner.quote("a fox in the snow", provider="illustrator")
print(plan.choice.model.id, plan.cost_usd)

# limner.edit
night = limner.edit(fox, "make it night", output_path="night.png")

# limner.render
orders = {"type": "bar", "title": "Orders", "labels": ["May", "June"], "values": [12, 18]}
chart = limner.render(orders, output_path="orders.png")

# limner.transform
small = limner.transform(chart.path, resize="50%", output_path="small.png")

# limner.inspect
print(limner.inspect(chart.path, "Which month is the highest?").text)

# limner.evidence
seen = limner.evidence(chart.path)
print(seen.measured.width, [line.text for line in seen.lines])

# limner.check
verdict = limner.check(fox.path, against=night.path)
print(verdict.passed)

# limner.sheet
sheet = limner.sheet([fox.path, night.path], output_path="sheet.png")

# limner.fit
for_model = limner.fit(chart.path, model="openai/gpt-5.5")
print(for_model.mime, for_model.tokens, for_model.cost_usd)

# limner.take
stored = limner.take(Path("fox.png").read_bytes())

# limner.picture
print(limner.picture(stored).info().mime)

# limner.batch
rows = [
    {"key": "fox", "prompt": "a fox", "size": "64x64"},
    {"key": "cat", "prompt": "a cat", "size": "64x64"},
]
print(limner.batch(rows, out="results.jsonl").counts.done)

# limner.run_rows
block = [{"key": "hen", "prompt": "a hen in a garden", "size": "512x512"}]
print(limner.run_rows(block, batch="birds", budget_usd=1)[0]["handle"])

# limner.spend
print(limner.spend().total_usd)
