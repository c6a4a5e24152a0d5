// Runs in the page, in a browser: writes what is wrong with how it looks into an element "seen", as JSON.
(() => {
  const complaints = [];
  const words = (element) => (element.textContent || "").trim().replace(/\s+/g, " ").slice(0, 60);
  const shown = (box) => box.width > 0 && box.height > 0;

  // Two words of one drawing that are printed over each other.
  for (const drawing of document.querySelectorAll("svg")) {
    const texts = [...drawing.querySelectorAll("text")].filter((t) => words(t) !== "");
    const boxes = texts.map((t) => t.getBoundingClientRect());
    for (let i = 0; i < texts.length; ++i) {
      for (let j = i + 1; j < texts.length; ++j) {
        const a = boxes[i], b = boxes[j];
        if (!shown(a) || !shown(b)) continue;
        const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        // A box is taller than its letters: a third of it may be shared.
        if (across > 1 && down > Math.min(a.height, b.height) / 3)
          complaints.push(`overprinted: "${words(texts[i])}" and "${words(texts[j])}"`);
      }
    }
    const frame = drawing.getBoundingClientRect();
    texts.forEach((text, i) => {
      const box = boxes[i];
      // A drawing that shrinks with the screen takes its words along.
      if (shown(box) && box.height < 8 && box.width > box.height) complaints.push(`too small: "${words(text)}"`);
      if (shown(box) && (box.left < frame.left - 1 || box.right > frame.right + 1))
        complaints.push(`cut off: "${words(text)}"`);
    });
  }

  // The page must not be wider than the screen; what scrolls by itself may be.
  if (document.documentElement.scrollWidth > window.innerWidth + 1)
    complaints.push(`wider than the screen: ${document.documentElement.scrollWidth} of ${window.innerWidth}`);

  // Words whose colour is too near to what they are printed on (WCAG 2.1, 1.4.3: 4.5 to 1; 3 to 1 for large ones).
  const channels = (colour) => (colour.match(/[\d.]+/g) || []).map(Number);
  const luminance = ([r, g, b]) => {
    const linear = [r, g, b].map((c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  const over = (above, below) => {
    const alpha = above.length > 3 ? above[3] : 1;
    return [0, 1, 2].map((i) => above[i] * alpha + below[i] * (1 - alpha));
  };
  const ground = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) layers.push(channels(getComputedStyle(at).backgroundColor));
    return layers.reverse().reduce((below, layer) => layer.length ? over(layer, below) : below, [255, 255, 255]);
  };
  const faint = new Set();
  for (const element of document.querySelectorAll("text, p, td, th, li, h1, h2, h3, figcaption, span, b, code")) {
    const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim() !== "");
    if (!own || !shown(element.getBoundingClientRect())) continue;
    const style = getComputedStyle(element);
    const colour = channels(element.tagName === "text" ? style.fill : style.color);
    if (colour.length < 3) continue;
    const below = ground(element), light = luminance(over(colour, below)), dark = luminance(below);
    const contrast = (Math.max(light, dark) + 0.05) / (Math.min(light, dark) + 0.05);
    const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.6 && style.fontWeight >= 600);
    if (contrast < (large ? 3 : 4.5)) faint.add(`faint (${contrast.toFixed(1)} to 1): "${words(element)}"`);
  }
  complaints.push(...faint);

  const note = document.createElement("pre");
  note.id = "seen";
  note.textContent = JSON.stringify({
    complaints,
    drawings: document.querySelectorAll("svg").length,
    dark: matchMedia("(prefers-color-scheme: dark)").matches,
    width: window.innerWidth,
    texts: [...document.querySelectorAll("svg text")].map(words),
  });
  document.body.append(note);
})();
