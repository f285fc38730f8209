# SPDX-License-Identifier: GPL-2.0
"""Texts whose lines belong to a line above, and what is explained of them."""
from __future__ import annotations

import pytest
from cpuwhy import explain, texts
from cpuwhy.case import Case, Finding

BASE = "devices/system/cpu"
#: (start of a CPU, driver, hardware's limits, policy, governor), by language of cpupower
SPEECH = {
    "en": ("analyzing CPU 3:", "  driver: acpi-cpufreq", "  hardware limits: 800 MHz - 3.40 GHz",
           "  current policy: frequency should be within 800 MHz and 1.20 GHz.",
           '                  The governor "ondemand" may decide which speed to use'),
    "de": ("CPU 3 wird analysiert:", "  Treiber: acpi-cpufreq",
           "  Hardwarebegrenzungen: 800 MHz - 3.40 GHz",
           "  momentane Richtlinie: Frequenz sollte innerhalb 800 MHz und 1.20 GHz.",
           '                  Der Regler "ondemand" kann entscheiden, welche'),
    "fr": ("analyse du CPU 3 :", "  pilote : acpi-cpufreq",
           "  limitation matérielle : 800 MHz - 3.40 GHz",
           "  tactique actuelle : la fréquence doit être comprise entre 800 MHz et 1.20 GHz.",
           '                  Le régulateur "ondemand" est libre de choisir'),
    "it": ("analisi della CPU 3:", "  modulo acpi-cpufreq",
           "  limiti hardware: 800 MHz - 3.40 GHz",
           "  gestore attuale: la frequenza deve mantenersi tra 800 MHz e 1.20 GHz.",
           '                  Il gestore "ondemand" può decidere la velocità')}


def limiters(text: str) -> list[Finding]:
    return explain.explain(Case(texts.read_text(text, "paste"))).limiters


@pytest.mark.parametrize("language", SPEECH)
def test_cpupower_in_any_language(language: str) -> None:
    text = "\n".join(SPEECH[language]) + "\n"
    material = texts.read_text(text)
    policy = {path.rpartition("/")[2]: fact.value for path, fact in material.sysfs.items()
              if "/cpu3/cpufreq/" in path}
    assert policy == {"scaling_driver": "acpi-cpufreq", "scaling_governor": "ondemand",
                      "cpuinfo_min_freq": "800000", "cpuinfo_max_freq": "3400000",
                      "scaling_min_freq": "800000", "scaling_max_freq": "1200000"}
    found, = limiters(text)
    assert found.kind == "policy-max" and found.lines[0].line == 4
    assert not limiters(text.replace("1.20", "3.40"))


@pytest.mark.parametrize("driver, supported, active, kind", [
    ("amd-pstate", "yes", "no", "turbo-off"), ("intel_pstate", "yes", "no", "turbo-off"),
    ("amd-pstate", "yes", "yes", ""), ("acpi-cpufreq", "no", "no", "")])
def test_boost(driver: str, supported: str, active: str, kind: str) -> None:
    text = (f"analyzing CPU 0:\n  driver: {driver}\n  boost state support:\n    Supported:"
            f" {supported}\n    Active: {active}\n")
    assert [found.kind for found in limiters(text)] == [kind] * bool(kind)


@pytest.mark.parametrize("virtual", [False, True])
def test_no_driver(virtual: bool) -> None:
    text = "analyzing CPU 0:\n  no or unknown cpufreq driver is active on this CPU\n"
    text += "processor\t: 0\nflags\t\t: fpu hypervisor\n" * virtual
    assert [found.kind for found in limiters(text)] == ["no-driver"] * (not virtual)


def test_short_form() -> None:
    line = "CPU  2       800000 kHz ( 20 %)  -    2000000 kHz ( 50 %)  -  powersave\n"
    found, = limiters(line)
    assert "scaling_max_freq is 2000 MHz on CPU 2, the hardware's is 4000" in found.says
    assert not limiters(line.replace("2000000 kHz ( 50 %)", "4000000 kHz (100 %)"))


IDLE = """\
CPUidle driver: intel_idle
CPUidle governor: menu
analyzing CPU 0:

Number of idle states: 3
Available idle states: POLL C1 C6
C1:
Flags/Description: MWAIT 0x00
Latency: 2
Usage: 5000
Duration: 1000000
C6 (DISABLED) :
Flags/Description: MWAIT 0x20
Latency: 133
Usage: 0
"""


def test_idle_states() -> None:
    material = texts.read_text(IDLE)
    assert material.file(f"{BASE}/cpu0/cpuidle/state2/latency") == "133"
    found, = limiters(IDLE)
    assert found.kind == "idle-disabled" and "C6 is disabled on CPU 0" in found.says
    assert not limiters(IDLE.replace(" (DISABLED) ", ""))


def test_only_shallow_states() -> None:
    text = IDLE.split("C6 (DIS")[0].replace("POLL C1 C6", "POLL C1-SKX")
    found, = limiters(text)
    assert found.kind == "idle-missing" and "POLL C1-SKX" in found.says
    assert not limiters(IDLE.split("C6 (DIS")[0].replace("C1 C6", "C1 C2"))


POWERCAP = """\
intel-rapl-mmio
  enabled: 1
  Zone 0
    name: package-0
    enabled: 1
    Constraint 0
      name: long_term
      power_limit_uw: 15000000
      max_power_uw: 28000000
intel-rapl
  Zone 0
    name: package-0
    enabled: 1
    Constraint 0
      name: long_term
      power_limit_uw: 200000000
      max_power_uw: 28000000
    Zone 0:0
      name: core
      enabled: 1
      Constraint 0
        name: long_term
        power_limit_uw: 1000000
"""


def test_powercap() -> None:
    """The lower of the two copies counts; the limit of the cores is another."""
    found, = limiters(POWERCAP)
    assert found.kind == "power-limit" and "PL1 is 15 W, the part is made for 28" in found.says
    assert "intel-rapl-mmio:0" in found.remedy
    assert not limiters(POWERCAP.replace(": 15000000", ": 28000000"))


I7Z = """\
  CPU Multiplier 34x || Bus clock frequency (BCLK) 100.21 MHz
  TURBO DISABLED on 4 Cores, Hyper Threading ON
  Max TURBO Multiplier (if Enabled) with 1/2/3/4 Cores is  40x/39x/38x/37x
"""


@pytest.mark.parametrize("old, new, kind", [("", "", "turbo-off"), ("DISABLED", "ENABLED", ""),
                                            ("40x/39x/38x/37x", "34x/34x/34x/34x", "")])
def test_i7z(old: str, new: str, kind: str) -> None:
    assert [f.kind for f in limiters(I7Z.replace(old, new) if old else I7Z)] == [kind] * bool(kind)


def test_a_log_without_times() -> None:
    text = ("mce: CPU1: Package temperature above threshold, cpu clock throttled (total events ="
            " 12705)\n")
    found, = limiters(text)
    assert found.kind == "thermal" and "12705 times" in found.says


def test_tlp_has_units() -> None:
    text = (f"/sys/{BASE}/cpu0/cpufreq/scaling_max_freq  =   400000 [kHz]\n"
            f"/sys/{BASE}/cpu0/cpufreq/cpuinfo_max_freq  =  4463000 [kHz]\n"
            "/sys/firmware/acpi/platform_profile  = (not available)\n")
    material = texts.read_text(text)
    assert material.file("firmware/acpi/platform_profile") == ""
    assert [found.kind for found in limiters(text)] == ["policy-max"]


@pytest.mark.parametrize("on, kind", [("power limit status", "power-limit"),
                                      ("thermal limit status", "thermal"),
                                      ("prochot or forcepr status", "prochot"),
                                      ("power limit log", "")])
def test_bits_in_words(on: str, kind: str) -> None:
    text = "".join(f"[D] core 5 thermal status: {name} = {int(name == on)}\n" for name in (
        "thermal limit status", "thermal limit log", "prochot or forcepr status",
        "power limit status", "power limit log", "crit temp status"))
    assert [found.kind for found in limiters(text)] == [kind] * bool(kind)
