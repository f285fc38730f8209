# SPDX-License-Identifier: GPL-2.0
"""lscpu's lines in any language: by known words, else by values and their order."""
from __future__ import annotations

import re
from collections.abc import Iterator

from .texts import Where

VENDORS = ("GenuineIntel", "AuthenticAMD", "HygonGenuine", "CentaurHauls", "  Shanghai  ")
BRAND = re.compile(r"(?:\d+th Gen )?(?:Intel|AMD|Genuine Intel|Hygon|VIA)\b.*\w")
ARCHITECTURE = re.compile(r"x86_64|i[3-6]86$")
ONLINE = re.compile(r"\d+(?:[-,]\d+)+$")

#: Words by what they say. Those of `sure` are lscpu's alone; the others count only beside
#: one of these.
WORDS = {
    "threads": "thread per core|thread pro kern|thread par cœur|thread par coeur"
    "|hilo de procesamiento por núcleo|hilos de procesamiento por núcleo|hilo por núcleo"
    "|subproceso por núcleo|subprocesos por núcleo|thread per núcleo|thread por núcleo"
    "|threads por núcleo|thread por core|потоков на ядро|поток на ядро|wątków na rdzeń"
    "|wątki na rdzeń|wątek na rdzeń|每个核的线程数|每个核心的线程数|每核线程数|每核心執行緒數"
    "|每個核心的執行緒數|コアあたりのスレッド数|コア当たりのスレッド数|コアごとのスレッド数"
    "|코어 당 스레드|코어당 스레드|çekirdek başına iş parçacığı|vláken na jádro|draad per kern"
    "|потоків на ядро|trådar per kärna|tråd per kärna|trådar per kjerne|tråde pr kerne"
    "|fils per nucli|szálak magonként|säikeitä per ydin",
    "cores": "core per socket|kern pro sockel|kern pro socket|kerne pro sockel|cœur par socket"
    "|coeur par socket|cœur par support|núcleo por «socket»|núcleo por socket"
    "|núcleos por socket|núcleo por zócalo|núcleos por «socket»|núcleo por soquete"
    "|núcleos por soquete|ядер на сокет|ядро на сокет|rdzeni na gniazdo|rdzenie na gniazdo"
    "|rdzeń na gniazdo|每个座的核数|每个插槽的核心数|每座核数|每通訊端核心數|每個插槽的核心數"
    "|ソケットあたりのコア数|ソケット当たりのコア数|ソケットごとのコア数|소켓 당 코어|소켓당 코어"
    "|soket başına çekirdek|jader na patici|jader na socket|kern per voet|kern per socket"
    "|ядер на сокет|kärnor per sockel|kärna per sockel|kjerner per sokkel|kerner pr sokkel"
    "|nuclis per sòcol|magok foglalatonként|ytimiä per kanta",
    "sockets": "socket|sockel|«socket»|zócalo|soquete|сокетов|сокет|gniazd|gniazda|gniazdo"
    "|座|插槽|通訊端|ソケット数|ソケット|소켓|soket|patic|socketů|voet|сокетів|sokkel|sòcol"
    "|foglalat",
    "vendor": "vendor id|anbieterkennung|herstellerkennung|identifiant constructeur"
    "|id de fabricante|id del fabricante|id fornitore|id produttore|id de fornecedor"
    "|id do fornecedor|id производителя|id прроизводителя|id producenta|厂商 id|厂商标识"
    "|供應商識別號|ベンダー id|ベンダーid|제조사 id|벤더 id",
    "family": "cpu family|prozessorfamilie|famille de processeur|familia de cpu|famiglia cpu"
    "|família da cpu|família de cpu|семейство цпу|семейство процессоров|rodzina cpu"
    "|rodzina procesora|cpu 系列|系列|cpu 家族|cpu ファミリー|cpuファミリー|cpu 제품군",
    "model": "model|modell|modèle|modelo|modello|модель|型号|型號|モデル|모델",
    "name": "model name|modellname|nom de modèle|nombre del modelo|nome modello"
    "|nome do modelo|имя модели|название модели|nazwa modelu|型号名称|型號名稱|モデル名"
    "|모델명|모델 이름",
    "stepping": "stepping|révision|revisión|step|степпинг|wersja|步进|製程|步進|ステッピング"
    "|스테핑",
    "cpus": "cpu|processeur|processore|процессор|процессоры",
    "max_mhz": "cpu max mhz|maximale taktfrequenz der cpu|cpu max. mhz",
    "hypervisor": "hypervisor vendor|hypervisor-anbieter|constructeur d'hyperviseur"
    "|fabricante del hipervisor|fabricante do hipervisor|produttore hypervisor"
    "|производитель гипервизора|producent hipernadzorcy|超管理器厂商|虛擬化管理程式供應商"
    "|ハイパーバイザのベンダー|ハイパーバイザーのベンダー",
    "flags": "flags|markierungen|drapeaux|drapaux|indicadores|opções|флаги|flagi|标记|旗標|フラグ",
}
SURE = ("threads", "cores")
BY_WORD = {word: name for name, words in WORDS.items() for word in words.split("|")}
NUMBERS = ("threads", "cores", "sockets", "family", "model", "stepping", "cpus")

Found = tuple[str, str, Where]          # what, value, line


def word(key: str) -> str:
    """What a key is about; "" if it is none of lscpu's. "(s)", "(e)" and case do not count."""
    return BY_WORD.get(" ".join(re.sub(r"\(\w{1,3}\)", "", key).lower().split()), "")


def resolve(run: list[tuple[str, str, Where]]) -> Iterator[Found]:
    """Neighbouring lines "key: value" of which some may be lscpu's."""
    found = [(word(key), value, where) for key, value, where in run if "BIOS" not in key]
    known = {name for name, value, _ in found if name}
    of_cpu = any(value in VENDORS for _, value, _ in found) or any(
        ARCHITECTURE.match(value) for _, value, _ in found)
    if not (known & set(SURE) or of_cpu and len(found) > 4):
        return
    if of_cpu and not {"threads", "cores", "sockets"} <= known:
        _by_order(found)
    for name, value, where in found:
        if name in NUMBERS:
            if value.isdecimal():
                yield name, value, where
        elif name == "vendor" and value in VENDORS or name not in ("", "vendor"):
            yield name, value, where


def _by_order(found: list[Found]) -> None:
    """The order in which lscpu prints is the same in all languages. Since 2.37: vendor, name,
    family, model, threads, cores, sockets, stepping; before: list of CPUs, threads, cores,
    sockets, [nodes], vendor, family, model, name, stepping."""
    vendor = next((at for at, (_, value, _) in enumerate(found) if value in VENDORS), None)
    name = next((at for at, (_, value, _) in enumerate(found) if BRAND.match(value)
                 and value not in VENDORS), None)
    cpus = next((at for at, (_, value, _) in enumerate(found) if ONLINE.match(value)), None)

    def take(at: int, names: tuple[str, ...]) -> None:
        for what in names:
            while at < len(found) and not found[at][1].isdecimal():
                at += 1
            if at < len(found):
                found[at] = (what, *found[at][1:])
            at += 1

    if vendor is not None:
        found[vendor] = ("vendor", *found[vendor][1:])
    if name is not None:
        found[name] = ("name", *found[name][1:])
    if vendor is not None and name is not None and vendor < name <= vendor + 2:
        take(name + 1, ("family", "model", "threads", "cores", "sockets", "stepping"))
    elif cpus is not None and (vendor is None or cpus < vendor):
        take(cpus + 1, ("threads", "cores", "sockets"))
        if vendor is not None:
            take(vendor + 1, ("family", "model"))
            if name is not None:
                take(name + 1, ("stepping",))
