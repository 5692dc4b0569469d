// Measures the page in the frame `f`, and writes what is wrong with it, as JSON, into `p`.
const LEAST_CONTRAST = 4.5; // WCAG 2.2, 1.4.3

onload = () => {
  const page = document.getElementById("f").contentDocument;
  const view = page.defaultView;
  const style = (element) => view.getComputedStyle(element);
  const isShown = (element) => element.getClientRects().length && style(element).visibility !== "hidden";
  const told = [...widths(page), ...inks(page, style, isShown), ...plots(page, isShown)];
  const result = {
    plots: page.querySelectorAll("svg").length,
    paper: behind(page.querySelector("main"), style),
    told,
  };
  document.getElementById("p").textContent = "measured" + JSON.stringify(result);
};

function widths(page) {
  const { scrollWidth, clientWidth } = page.documentElement;
  return scrollWidth > clientWidth ? [`wide: ${scrollWidth} px in ${clientWidth}`] : [];
}

// Texts that are hard to read, or cut off.
function inks(page, style, isShown) {
  const told = [];
  const walker = page.createTreeWalker(page.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode()); ) {
    const element = node.parentElement;
    const text = node.data.trim().slice(0, 40);
    if (!text || !isShown(element)) continue;
    const inPlot = element.closest("svg");
    const ink = inPlot ? style(element).fill : style(element).color;
    const ratio = contrast(ink, behind(element, style));
    if (ratio < LEAST_CONTRAST) told.push(`contrast: ${ratio.toFixed(1)} of ${text}`);
    const isForReaders = element.clientWidth <= 1; // captions that only screen readers tell
    if (!inPlot && !isForReaders && style(element).overflowX === "hidden" && element.scrollWidth > element.clientWidth + 1)
      told.push(`cut: ${text}`);
  }
  return told;
}

// Texts of plots that lie on each other, or reach out of the plot.
function plots(page, isShown) {
  const told = [];
  for (const plot of [...page.querySelectorAll("svg")].filter(isShown)) {
    const frame = plot.getBoundingClientRect();
    const texts = [...plot.querySelectorAll("text")]
      .filter(isShown)
      .map((text) => [text.textContent, text.getBoundingClientRect()])
      .filter(([, box]) => box.width);
    texts.forEach(([text, box], at) => {
      if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1)
        told.push(`outside: ${text}`);
      for (const [other, its] of texts.slice(at + 1))
        if (covered(box, its) > 0.15) told.push(`overlap: ${text} and ${other}`);
    });
  }
  return told;
}

// The part of the smaller box that both have.
function covered(first, second) {
  const width = Math.min(first.right, second.right) - Math.max(first.left, second.left);
  const height = Math.min(first.bottom, second.bottom) - Math.max(first.top, second.top);
  if (width <= 1 || height <= 1) return 0;
  return (width * height) / Math.min(first.width * first.height, second.width * second.height);
}

function parts(color) {
  return color.match(/[\d.]+/g).map(Number);
}

function behind(element, style) {
  for (; element; element = element.parentElement) {
    const color = style(element).backgroundColor;
    const [, , , alpha = 1] = parts(color);
    if (alpha > 0.5) return color;
  }
  return "rgb(255, 255, 255)";
}

function luminance(color) {
  const [red, green, blue] = parts(color)
    .slice(0, 3)
    .map((value) => value / 255)
    .map((value) => (value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(first, second) {
  const [lighter, darker] = [luminance(first), luminance(second)].sort((a, b) => b - a);
  return (lighter + 0.05) / (darker + 0.05);
}
