"""Draw a picture in two lines; on a machine without any key the illustrator draws it."""

import limner

drawn = limner.generate("two penguins and a snowman beside a christmas tree")
print(drawn.path, drawn.dimensions, f"${drawn.cost_usd}")
