"""Pages that load fast on a phone, of what the themes bring for every page of any site.

The search and its index load on its own page only; scripts wait for the page, pictures
for the reader's eye, and MathJax for the first sight of the text. Style sheets keep the
rules, and the fonts of icons the signs, that a page or a script of the site names.
"""

import logging
import re

from fontTools import subset

SEARCH = re.compile(
    r'\s*<script src="[./]*(?:_static/)?(?:searchtools|language_data|searchindex)\.js">'
    "</script>"
)
# The icons are a font; their script would draw each again.
SPARE = re.compile(
    r'<script defer src="[^"]*fontawesome\.js[^"]*"></script>'
    r'|<link rel="preload" as="script"[^>]*>'
)
# `documentation_options.js` is of 300 bytes, and lines in the page add to it.
WAITS = re.compile(r'<script (?=(?!defer)[^>]*src="(?!\S*documentation_options))')
PICTURE = re.compile(r'(<span class="picture [^>]*>)<img (?!loading)')
ICON = re.compile(r'<i (?=class="[^"]*\bfa)')
MATHJAX = re.compile(r'<script defer="defer" src="([^"]*/mathjax/[^"]*)"></script>')
# Eight formulas at a time, so that a page with hundreds moves meanwhile.
MATH = """<script>
addEventListener("load", () => requestAnimationFrame(() => setTimeout(() => {
  const formulas = [...document.querySelectorAll(".math")];
  const some = async () => {
    await MathJax.typesetPromise(formulas.splice(0, 8));
    if (formulas.length) setTimeout(some);
  };
  const ready = () => { MathJax.startup.defaultReady(); some(); };
  MathJax.startup = {typeset: false, ready};
  const script = Object.assign(document.createElement("script"), {src: "FILE"});
  if (formulas.length) document.head.append(script);
})));
</script>"""


def light(name, page):
    """A page that loads what it shows."""
    if name != "search.html":
        page = SEARCH.sub("", page)
    page = WAITS.sub("<script defer ", SPARE.sub("", page))
    page = MATHJAX.sub(lambda file: MATH.replace("FILE", file[1]), page)
    page = ICON.sub('<i aria-hidden="true" ', page)
    first, second, others = page.partition('<span class="picture ')
    return first + second + PICTURE.sub(r'\1<img loading="lazy" ', others)


RULE = re.compile(r"/\*.*?\*/|((?:[^{};@/]|/(?!\*))+)\{[^{}]*\}", re.DOTALL)
CLASS = re.compile(r"\.((?:\\.|[a-zA-Z_-])(?:\\.|[\w-])*)")


def used_rules(css, words):
    """The rules of a style sheet whose classes are all among the words of the site."""

    def keep(rule):
        if rule[1] is None:  # a comment; those with ! name the license
            return rule[0] if rule[0].startswith("/*!") else ""
        without = re.sub(r"\([^)]*\)", "", rule[1])  # such as `:not(.this)`
        parts = map(CLASS.findall, without.split(","))
        used = any(all(c.replace("\\", "") in words for c in part) for part in parts)
        return rule[0] if used else ""

    return RULE.sub(keep, css)


def used_signs(folder, codes):
    """Write the fonts of icons anew, with the signs that style sheets name."""
    logging.getLogger("fontTools").setLevel("WARNING")
    for path in folder.glob("*.ttf"):
        options = subset.Options(flavor="woff")
        font = subset.load_font(str(path), options)
        subsetter = subset.Subsetter(options)
        subsetter.populate(unicodes=codes)
        subsetter.subset(font)
        # a browser goes by the file, not by its name
        subset.save_font(font, str(path.with_suffix(".woff2")), options)


def lighten(app, error):
    if error or app.builder.name != "html":
        return
    static = app.outdir / "_static"
    text = []
    for path in app.outdir.rglob("*.html"):
        text.append(light(path.name, path.read_text("utf-8")))
        path.write_text(text[-1], "utf-8")
    (static / "scripts/fontawesome.js").unlink(missing_ok=True)
    text += [
        p.read_text("utf-8") for d in ("", "scripts") for p in (static / d).glob("*.js")
    ]
    words = set(re.findall(r"[\w-]+", " ".join(text)))
    rules = {
        p: p.read_text("utf-8")
        for d in ("", "styles")
        for p in (static / d).glob("*.css")
    }
    for path, css in rules.items():
        rules[path] = used_rules(css, words)
        path.write_text(rules[path], "utf-8")
    codes = re.findall(r"\\([ef][0-9a-f]{3})\b", " ".join(rules.values()))
    used_signs(static / "vendor/fontawesome/webfonts", [int(c, 16) for c in codes])


def setup(app):
    app.connect("build-finished", lighten, priority=800)  # of the book alone
    return {"parallel_read_safe": True, "parallel_write_safe": True}
