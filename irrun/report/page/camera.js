/** The part of the drawing that the window shows: pan, zoom and fit. */

const CLOSEST = 3;
const FARTHEST = 0.02;
const MARGIN = 28;

export class Camera {
  /** `graph` is the SVG element, and `world` its group that is moved and scaled. */
  constructor(graph, world) {
    Object.assign(this, {graph, world, x: 0, y: 0, scale: 1});
    this.pointers = new Map();
    this.moved = 0;
    graph.addEventListener("wheel", (event) => this.wheel(event), {passive: false});
    graph.addEventListener("pointerdown", (event) => this.down(event));
    graph.addEventListener("pointermove", (event) => this.move(event));
    for (const name of ["pointerup", "pointercancel"]) graph.addEventListener(name, (event) => this.up(event));
  }

  get size() {
    return {width: this.graph.clientWidth, height: this.graph.clientHeight};
  }

  apply(glide = false) {
    this.world.classList.toggle("gliding", glide);
    this.world.style.transform = `translate(${this.x}px, ${this.y}px) scale(${this.scale})`;
  }

  /** Zoom by a factor around a point of the window, by default its centre. */
  zoom(factor, x = this.size.width / 2, y = this.size.height / 2, glide = true) {
    const scale = Math.min(CLOSEST, Math.max(FARTHEST, this.scale * factor));
    this.x = x - ((x - this.x) * scale) / this.scale;
    this.y = y - ((y - this.y) * scale) / this.scale;
    this.scale = scale;
    this.apply(glide);
  }

  /** Show a box of the drawing as large as it fits, but no smaller than `least`: then its top. */
  fit(box, least = FARTHEST) {
    const {width, height} = this.size;
    const whole = Math.min((width - 2 * MARGIN) / box.width, (height - 3 * MARGIN) / box.height, 1.15);
    this.scale = Math.min(CLOSEST, Math.max(least, whole));
    this.x = width / 2 - (box.x + box.width / 2) * this.scale;
    const fits = box.height * this.scale <= height - 2 * MARGIN;
    this.y = fits ? height / 2 - (box.y + box.height / 2) * this.scale + MARGIN / 3 : 1.5 * MARGIN - box.y * this.scale;
    this.apply();
  }

  /** Move a point of the drawing to the centre, unless it is well inside the window already. */
  show(point, always = false) {
    const {width, height} = this.size;
    const x = this.x + point.x * this.scale;
    const y = this.y + point.y * this.scale;
    const inside = x > 90 && x < width - 90 && y > 60 && y < height - 60;
    if (inside && !always) return;
    this.x += width / 2 - x;
    this.y += height / 2 - y;
    this.apply(true);
  }

  wheel(event) {
    event.preventDefault();
    if (event.ctrlKey || event.metaKey || Math.abs(event.deltaX) < Math.abs(event.deltaY)) {
      const box = this.graph.getBoundingClientRect();
      this.zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0016)), event.clientX - box.left, event.clientY - box.top, false);
    } else {
      this.x -= event.deltaX;
      this.apply();
    }
  }

  down(event) {
    this.pointers.set(event.pointerId, event);
    this.moved = 0;
  }

  move(event) {
    const before = this.pointers.get(event.pointerId);
    if (!before) return;
    const others = [...this.pointers.values()].filter((other) => other.pointerId !== event.pointerId);
    const dx = event.clientX - before.clientX;
    const dy = event.clientY - before.clientY;
    this.moved += Math.abs(dx) + Math.abs(dy);
    if (this.moved > 3) {
      this.graph.classList.add("dragging");
      this.graph.setPointerCapture(event.pointerId);
    }
    if (others.length) {
      const [other] = others;
      const distance = (one) => Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY) || 1;
      const box = this.graph.getBoundingClientRect();
      this.zoom(distance(event) / distance(before), other.clientX - box.left, other.clientY - box.top, false);
    } else if (this.moved > 3) {
      this.x += dx;
      this.y += dy;
      this.apply();
    }
    this.pointers.set(event.pointerId, event);
  }

  up(event) {
    this.pointers.delete(event.pointerId);
    this.graph.classList.remove("dragging");
  }

  /** Whether the last press was a drag, so that it is no click. */
  get dragged() {
    return this.moved > 3;
  }
}
