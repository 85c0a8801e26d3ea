"""Sequences that resemble spoken digits, made without a microphone.

A word is a list of sounds, a sound a set of resonances and noises, and a speaker has a
vocal tract of some length, a tempo and a microphone. What is returned are cepstra: a
discrete cosine transform of log energies in bands of the spectrum, every 10 ms or so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.fft import dct

# Three resonances in hertz, loudness of voice and of noise, centre of the noise in hertz,
# and frames that the sound lasts.
SOUNDS: dict[str, tuple[tuple[int, int, int], float, float, int, int]] = {
    "ee": ((270, 2290, 3010), 1.0, 0.0, 2000, 9),
    "i": ((390, 1990, 2550), 1.0, 0.0, 2000, 5),
    "e": ((530, 1840, 2480), 1.0, 0.0, 2000, 6),
    "u": ((640, 1190, 2390), 1.0, 0.0, 2000, 6),
    "ah": ((730, 1090, 2440), 1.0, 0.0, 2000, 6),
    "aw": ((570, 840, 2410), 1.0, 0.0, 2000, 9),
    "oo": ((300, 870, 2240), 0.9, 0.0, 2000, 9),
    "r": ((310, 1060, 1380), 0.6, 0.0, 2000, 4),
    "w": ((290, 610, 2150), 0.6, 0.0, 2000, 4),
    "n": ((280, 1700, 2600), 0.3, 0.0, 2000, 5),
    "v": ((300, 1100, 2400), 0.2, 0.05, 3000, 4),
    "z": ((300, 1500, 2500), 0.2, 0.2, 3600, 4),
    "s": ((300, 1500, 2500), 0.0, 0.3, 3700, 7),
    "f": ((300, 1100, 2400), 0.0, 0.06, 2800, 5),
    "th": ((300, 1400, 2500), 0.0, 0.05, 3300, 4),
    "t": ((300, 1700, 2600), 0.0, 0.15, 3300, 3),
    "k": ((300, 1800, 2200), 0.0, 0.1, 1900, 3),
    "-": ((300, 1500, 2500), 0.0, 0.0, 2000, 3),
}
WORDS = (
    "z i r aw oo",
    "w u n",
    "t oo",
    "th r ee",
    "f aw r",
    "f ah i v",
    "s i - k s",
    "s e v u n",
    "e i - t",
    "n ah i n",
)


@dataclass(frozen=True)
class Speaker:
    """How somebody speaks.

    Attributes
    ----------
    pitch : float
        What resonances are multiplied by; a short vocal tract has high ones.
    tempo : float
        What durations are divided by.
    microphone : ndarray of shape (n_bands,)
        What is added to the log energies of the bands.
    """

    pitch: float
    tempo: float
    microphone: np.ndarray


def draw_speaker(generator: np.random.Generator, n_bands: int) -> Speaker:
    """Draw a speaker."""
    angle = np.linspace(0.0, np.pi, n_bands)
    tilt, bend = generator.normal(0.0, 1.0, 2)
    microphone = tilt * np.cos(angle) + bend * np.cos(2.0 * angle)
    pitch, tempo = generator.uniform(0.85, 1.15), generator.uniform(0.75, 1.3)
    return Speaker(pitch, tempo, microphone)


def spoken_digits(
    n_speakers: int = 4, n_each: int = 5, n_cepstra: int = 8, seed: int = 0
) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """Let speakers say every digit a few times.

    Returns
    -------
    X : list of ndarray of shape (T_i, n_cepstra)
        Cepstra of the words.
    y : ndarray of shape (n,)
        The digits.
    speakers : ndarray of shape (n,)
        Numbers of the speakers.
    """
    generator = np.random.default_rng(seed)
    X, y, speakers = [], [], []
    for number in range(n_speakers):
        speaker = draw_speaker(generator, n_bands=20)
        for digit, word in enumerate(WORDS):
            for _ in range(n_each):
                X.append(say(word, speaker, n_cepstra, generator))
                y.append(digit)
                speakers.append(number)
    return X, np.array(y), np.array(speakers)


def say(
    word: str, speaker: Speaker, n_cepstra: int, generator: np.random.Generator
) -> np.ndarray:
    """Return the cepstra (T, n_cepstra) of a word."""
    tempo = speaker.tempo * np.exp(generator.normal(0.0, 0.12))
    targets = []
    for sound in word.split():
        resonances, voice, noise, centre, n_frames = SOUNDS[sound]
        drawn = n_frames / tempo * np.exp(generator.normal(0.0, 0.2))
        length = max(2, round(drawn))
        # Nobody says a sound twice in the same way.
        own = speaker.pitch * np.exp(generator.normal(0.0, 0.1, 3))
        row = [*(own * resonances), voice, noise, centre]
        targets.append(np.tile(row, (length, 1)))
    track = np.concatenate(targets)
    # Sounds run into each other.
    padded = np.pad(track, ((2, 2), (0, 0)), mode="edge")
    track = np.mean([padded[k : k + len(track)] for k in range(5)], axis=0)
    room = 0.02 * np.exp(generator.normal(0.0, 1.0))
    bands = np.log(energies(track, len(speaker.microphone)) + room)
    bands += speaker.microphone + generator.normal(0.0, 0.3)
    # Neighbouring frames overlap, and have a part of their noise in common.
    noise = generator.normal(0.0, 0.5, bands.shape)
    bands[1:] += noise[:-1]
    bands += noise
    return dct(bands, norm="ortho")[:, :n_cepstra]


def energies(track: np.ndarray, n_bands: int) -> np.ndarray:
    """Return energies (T, n_bands) of the resonances and noises of frames."""
    centres = np.linspace(mel(200.0), mel(3800.0), n_bands)
    voice, noise = track[:, 3, None], track[:, 4, None]
    total = noise * np.exp(-0.5 * ((centres - mel(track[:, 5, None])) / 300) ** 2)
    for number in range(3):
        peak = mel(track[:, number, None])
        bump = np.exp(-0.5 * ((centres - peak) / 90) ** 2)
        total = total + voice * 0.6**number * bump
    return total


def mel(hertz: float | np.ndarray) -> np.ndarray:
    """Return a frequency on a scale on which equal steps sound alike."""
    return 1127.0 * np.log1p(np.asarray(hertz) / 700.0)
