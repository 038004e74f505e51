"""Let an agent plan the picture: an SVG document with ready-made pictures in it."""

import limner

POSTER = """
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1024 1024">
  <rect width="1024" height="1024" fill="#fef3c7"/>
  <circle cx="512" cy="470" r="330" fill="#fbbf24"/>
  <asset name="robot" x="312" y="270" size="400"/>
  <asset name="books" x="690" y="560" size="220"/>
  <text x="512" y="920" font-size="84" font-weight="bold" text-anchor="middle">READ MORE</text>
</svg>
"""

drawn = limner.generate("a poster of a reading robot", svg=POSTER)
print(drawn.path)
