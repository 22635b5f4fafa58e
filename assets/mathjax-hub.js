// The widget manager typesets its labels with MathJax 2's Hub.Queue; the book loads MathJax 3.
// This gives every MathJax object that the page installs a Hub that typesets a label's $mathematics$.
(() => {
  let mathjax;

  const typeset = (node) => {
    if (node.childElementCount > 0 || !node.textContent.includes("$")) return; // a picture, or plain text
    node.dataset.source = node.textContent;
    node.textContent = node.textContent.replace(/\$([^$]+)\$/g, "\\($1\\)");
    node.classList.add("tex2jax_process");
    const wait = () => (mathjax?.startup?.promise ? mathjax.startup.promise : new Promise((r) => setTimeout(r, 50)).then(wait));
    wait().then(() => mathjax.typesetPromise([node]));
  };

  const Hub = { Queue: ([, , node]) => typeset(node) };
  Object.defineProperty(window, "MathJax", {
    configurable: true,
    get: () => mathjax,
    set: (value) => {
      mathjax = value;
      if (value) value.Hub = Hub;
    },
  });
})();
