// Give the handle of every slider a name and a value that a screen reader can speak.
(() => {
  const spoken = (label) => (label?.dataset.source ?? label?.textContent ?? "").replace(/[$\\{}_]/g, " ").trim();

  const describe = (slider) => {
    const handle = slider.querySelector('[role="slider"]');
    if (!handle) return;
    const label = slider.querySelector(".widget-label");
    const readout = slider.querySelector(".widget-readout");
    handle.setAttribute("aria-label", spoken(label) || "parameter");
    const speak = () => {
      if (handle.getAttribute("aria-valuetext") !== readout.textContent)
        handle.setAttribute("aria-valuetext", readout.textContent);
    };
    speak();
    new MutationObserver(speak).observe(handle, { attributeFilter: ["aria-valuetext", "aria-valuenow"] });
    if (readout) new MutationObserver(speak).observe(readout, { childList: true, characterData: true, subtree: true });
  };

  const scan = () => {
    for (const slider of document.querySelectorAll(".lindyn-explorer .widget-hslider:not([data-described])")) {
      if (!slider.querySelector('[role="slider"]')) continue;
      slider.dataset.described = "";
      describe(slider);
    }
  };

  window.addEventListener("DOMContentLoaded", () => {
    scan();
    new MutationObserver(scan).observe(document.body, { childList: true, subtree: true });
  });
})();
