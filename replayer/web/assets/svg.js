// Elements of SVG, and texts in it.

export const draw = (name, properties, ...children) => {
  const found = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(properties)) found.setAttribute(key, value);
  found.append(...children.filter(Boolean));
  return found;
};

export const words = (x, y, anchor, text) => draw("text", { x, y, "text-anchor": anchor }, text);
