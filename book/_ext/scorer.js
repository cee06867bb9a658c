/* The order of the search's results, and the text below them; Sphinx writes it behind its own (`html_search_scorer`).
   Sphinx counts a word in the title of a section as much as one in the title of the page, and a page as much as its
   best word. Here a page counts as much as its words do on average, and chapters come before what lists or documents. */
{
  const RECORD = /^book\/(benchmark|comparison|outside|patterns|reproduction|theory_proofs|whole_bags)/;
  const API = /^book\/api\b/;
  const ABOUT = /^book\/(benchmark_table|bibliography|claims|concordance|data$|errata|glossary|notation|teaching)/;
  const words = title => splitQuery(title.replace(/<[^>]*>/g, "").toLowerCase()).map(w => Scorer.stemmer.stemWord(w));
  const parse = Search._parseQuery;
  Search._parseQuery = query => {
    const parsed = parse(query);
    Scorer.asked = [...parsed[1]];
    return parsed;
  };

  // An excerpt is of the page's sentences: without its buttons and code, and with dots for formulas.
  const BESIDE = ".headerlink, script, style, .bd-header-article, #jb-print-docs-body, .prev-next-footer, .highlight";
  Search.htmlToText = (content, anchor) => {
    const page = new DOMParser().parseFromString(content, "text/html");
    page.querySelectorAll(BESIDE).forEach(part => part.remove());
    page.querySelectorAll(".math").forEach(formula => formula.textContent = "…");
    const main = page.querySelector("[role=main]");
    return ((anchor && main?.querySelector(anchor)) || main)?.textContent ?? "";
  };

  var Scorer = {
    objNameMatch: 8, objPartialMatch: 1, objPrio: {0: 0, 1: 0, 2: -5}, objPrioDefault: 0,
    title: 15, partialTitle: 0.2, term: 5, partialTerm: 0.1,
    asked: [],
    stemmer: new Stemmer(),
    score: ([page, title, anchor, described, score]) => {
      const number = title.match(/section-number">(\d+)/);
      const kind = API.test(page) ? -8 : ABOUT.test(page) ? -3 : RECORD.test(page) ? 0 : page === "book/index" ? 3
        : number ? 3 - number[1] / 100 : 2.5;
      if (described !== null || score < 1) return score;    // an object of the package; a part of a word
      if (score > 16) return 0.08 * score;                  // a term of the glossary
      if (anchor) return 0.6 * score + kind;                // a section
      const {docnames, titleterms} = Search._index, file = docnames.indexOf(page), inTitle = words(title);
      const worth = w => inTitle.includes(w) ? 15 : [titleterms[w]].flat().includes(file) ? 6 : 1;
      return Scorer.asked.reduce((sum, w) => sum + worth(w), 0) / Scorer.asked.length + kind;
    },
  };
}
