"""Take the pictures of docs/explore.md, with chromium and chromedriver.

    python tools/explorer_pictures.py

They are written to docs/images, with a palette to keep them small. Pillow, which comes
with matplotlib, and selenium are needed.
"""

from __future__ import annotations

import base64
import io
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image
from selenium import webdriver
from selenium.webdriver.support.wait import WebDriverWait
from sklearn.datasets import load_diabetes, load_wine

import hybridmix
from hybridmix import HybridHMMClassifier, HybridMixtureClassifier, MixtureRegressor

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")
N_COLOURS = 256
# Transitions of the page end within this many seconds.
PAUSE = 0.6

SET = """
const [id, value, kind] = arguments;
const control = document.querySelector(id);
control.value = value;
control.dispatchEvent(new Event(kind, { bubbles: true }));
"""


class Page:
    """A page in a browser without a window."""

    def __init__(self) -> None:
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium") or ""
        for flag in FLAGS:
            options.add_argument(flag)
        service = webdriver.ChromeService(shutil.which("chromedriver"))
        self.browser = webdriver.Chrome(options, service)

    def open(self, url: str, width: int, height: int, theme: str) -> None:
        """Open the explorer, and wait until it has answers."""
        self._command(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1 if width > 600 else 1.5,
            mobile=width < 600,
        )
        features = [{"name": "prefers-color-scheme", "value": theme}]
        self._command("Emulation.setEmulatedMedia", media="", features=features)
        self.browser.get(url)
        self.until("return document.documentElement.dataset.ready === 'yes'")

    def until(self, script: str) -> None:
        """Wait until a script returns something true."""
        WebDriverWait(self.browser, 60).until(lambda page: page.execute_script(script))

    def set(self, selector: str, value: object, kind: str = "input") -> None:
        """Give a control a value, as if it was typed."""
        self.browser.execute_script(SET, selector, str(value), kind)

    def click(self, selector: str) -> None:
        """Click an element, wherever it is."""
        self.browser.execute_script(
            "document.querySelector(arguments[0]).click()", selector
        )

    def show(self, selector: str) -> None:
        """Scroll to an element."""
        script = "document.querySelector(arguments[0]).scrollIntoView()"
        self.browser.execute_script(script, selector)

    def picture(self) -> Image.Image:
        """Return what is seen."""
        time.sleep(PAUSE)
        shot = self._command("Page.captureScreenshot", format="png")
        return Image.open(io.BytesIO(base64.b64decode(shot["data"]))).convert("RGB")

    def _command(self, name: str, **arguments: Any) -> Any:
        return self.browser.execute_cdp_cmd(name, arguments)


def save(image: Image.Image, name: str) -> None:
    """Write a picture with a palette."""
    path = IMAGES / name
    image.quantize(N_COLOURS).save(path, optimize=True)
    print(f"{name}: {image.width} x {image.height}, {path.stat().st_size / 1000:.0f} kB")


def side_by_side(images: list[Image.Image], room: int = 24) -> Image.Image:
    """Put pictures of one height next to each other."""
    width = sum(image.width for image in images) + room * (len(images) - 1)
    whole = Image.new("RGB", (width, images[0].height), "white")
    left = 0
    for image in images:
        whole.paste(image, (left, 0))
        left += image.width + room
    return whole


def wine() -> tuple[Any, pd.DataFrame, np.ndarray]:
    """Return a classifier of wines, and its training rows with holes."""
    X, y = load_wine(return_X_y=True, as_frame=True)
    X = X.mask(np.random.default_rng(0).random(X.shape) < 0.1)
    labels = np.array(["Barolo", "Grignolino", "Barbera"])[y]
    return HybridMixtureClassifier(random_state=0).fit(X, labels), X, labels


def take_classes(page: Page) -> None:
    """Take pictures of a classifier, on a desk and on a phone."""
    with hybridmix.explore(*wine()) as explorer:
        page.open(explorer.url, 1280, 1010, "light")
        page.set("#row input", 70, "change")
        time.sleep(PAUSE)
        page.click("#row .cell:nth-of-type(2) .eye")
        page.set("#cell-4", 146)
        page.click(".path button")
        page.until("return document.getElementById('tradeoff') !== null")
        page.browser.execute_script("document.activeElement.blur()")
        page.click("#densities .check input")
        save(page.picture(), "explore_row.png")

        def phone(selector: str) -> Image.Image:
            page.show(selector)
            return page.picture()

        page.open(explorer.url, 390, 844, "dark")
        page.set("#row input", 70, "change")
        time.sleep(PAUSE)
        page.set("#cell-4", 146)
        page.click("#row .cell:nth-of-type(1) .eye")
        shots = [phone(name) for name in ("header", "#says", "#densities")]
        save(side_by_side(shots), "explore_phone.png")


def take_numbers(page: Page) -> None:
    """Take a picture of a regressor."""
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    model = MixtureRegressor(random_state=0).fit(X, y)
    with hybridmix.explore(model, X, y) as explorer:
        page.open(explorer.url, 1280, 640, "dark")
        page.set("#row input", 12, "change")
        time.sleep(PAUSE)
        page.click("#row .cell:nth-of-type(3) .eye")
        save(page.picture(), "explore_regression.png")


def gestures() -> tuple[list[pd.DataFrame], list[str]]:
    """Return drawn gestures and what they are."""
    rng = np.random.default_rng(0)
    corners = {
        "circle": [[0, 0], [2, 2], [0, 4], [-2, 2]],
        "wave": [[0, 0], [2, 3], [0, 0], [-2, 3]],
        "swipe": [[-3, 1], [0, 1.4], [3, 1]],
    }
    frames, labels = [], []
    for number in range(42):
        label = list(corners)[number % 3]
        points = np.array(corners[label], float)
        x = np.repeat(points, rng.integers(5, 12, len(points)), axis=0)
        x = pd.DataFrame(x, columns=["x", "y"]).rolling(5, 1, center=True).mean()
        x += 0.25 * rng.normal(size=x.shape)
        x["speed"] = np.hypot(x["x"].diff(), x["y"].diff()).fillna(0.0)
        frames.append(x)
        labels.append(label)
    return frames, labels


def take_sequences(page: Page) -> None:
    """Take a picture of a model of sequences."""
    X, y = gestures()
    model = HybridHMMClassifier(
        4, topology="left-right", covariance_type="diag", tradeoff=1.0, random_state=0
    ).fit(X, y)
    with hybridmix.explore(model, X, y) as explorer:
        page.open(explorer.url, 1280, 880, "light")
        page.click("#row .check input")
        page.set(".sliders input", 24)
        save(page.picture(), "explore_sequences.png")


def main() -> None:
    """Take all pictures."""
    page = Page()
    try:
        takes: tuple[Callable[[Page], None], ...] = (
            take_classes,
            take_numbers,
            take_sequences,
        )
        for take in takes:
            take(page)
    finally:
        page.browser.quit()


if __name__ == "__main__":
    main()
