# pgseek: build, check, install. GNU make, no configure step.
#
#   make            build/pgseek
#   make check      seconds: unit, golden, conversations, layers, documents
#   make test       installs what is missing, then check and the end-to-end tests
#   make help       the rest
#
# Yours to set: CC, CFLAGS, LDFLAGS, BUILD, DESTDIR, PREFIX, WERROR=1, FUZZ_SECONDS, PYTEST_ARGS, PYTEST_JOBS.
# Each MODE (release, san, tsan, cover, fuzz) has its own objects under $(BUILD)/<mode>/.

MAKEFLAGS += --no-builtin-rules
ifeq ($(MAKELEVEL)$(filter -j%,$(MAKEFLAGS)),0)
MAKEFLAGS += -j$(shell nproc)
endif
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.SECONDARY:
.DEFAULT_GOAL := all

MODE ?= release
BUILD ?= build
OUT := $(BUILD)/$(MODE)
PREFIX ?= /usr/local
DESTDIR ?=
FUZZ_SECONDS ?= 5
PYTEST_ARGS ?=
PYTEST_JOBS ?= $(shell nproc)
PYTHON := /usr/bin/python3
ifeq ($(origin CC),default)
CC := gcc
endif

# ---- flags: ours apart from the user's, so that `make CFLAGS=...` loses nothing --------------------------------

CFLAGS ?= -O2 -g
PACKAGES := libuv libssl libcrypto libpq inih
STD := -std=c11 -D_GNU_SOURCE -UNDEBUG
WARN := -Wall -Wextra -Wshadow -Wconversion -Wsign-conversion -Wstrict-prototypes -Wmissing-prototypes \
        -Wold-style-definition -Wpointer-arith -Wcast-qual -Wwrite-strings -Wformat=2 -Wundef -Wvla \
        -Wimplicit-fallthrough $(if $(WERROR),-Werror)
HARDEN := -fno-strict-aliasing -fstack-protector-strong -fPIE
LINK_HARDEN := -pie -Wl,-z,relro,-z,now

# The program is optimised as a whole (a fifth of its instructions per untagged transaction); tests link the plain code
# that fat objects hold as well.
LTO := $(if $(filter release,$(MODE)),$(if $(findstring clang,$(CC)),,-flto=auto -ffat-lto-objects))
MODE_CFLAGS.release := -D_FORTIFY_SOURCE=2 $(LTO)
MODE_CFLAGS.san := -O1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
MODE_CFLAGS.tsan := -O1 -fno-omit-frame-pointer -fsanitize=thread
MODE_CFLAGS.cover := -O0 --coverage
MODE_CFLAGS.fuzz := -O1 -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
MODE_LDFLAGS := $(filter -fsanitize=% --coverage,$(MODE_CFLAGS.$(MODE)))

ALL_CFLAGS = $(STD) $(WARN) $(HARDEN) $(shell pkg-config --cflags $(PACKAGES) 2>/dev/null) $(CFLAGS) $(MODE_CFLAGS.$(MODE))
ALL_LDFLAGS = $(LINK_HARDEN) $(LDFLAGS) $(MODE_LDFLAGS)
LIBS = -lpg_query -lprotobuf-c $(shell pkg-config --libs $(PACKAGES) 2>/dev/null) -lpthread

# ---- sources: a new file needs no line here -------------------------------------------------------------------------

PARSER_OBJ := $(patsubst %.c,$(OUT)/%.o,$(wildcard parser/*.c))
PROXY_OBJ := $(patsubst %.c,$(OUT)/%.o,$(wildcard proxy/*/*.c))
MAIN_OBJ := $(patsubst %.c,$(OUT)/%.o,$(wildcard proxy/main.c))
LIBRARIES := $(OUT)/libproxy.a $(OUT)/libpgseek.a

# In a folder of tests each test_*.c, run.c or fuzz_*.c is a program; the other files are linked to all of them.
UNIT := $(patsubst tests/unit/%.c,$(OUT)/tests/unit/%,$(wildcard tests/unit/test_*.c))
UNIT_HELP := $(patsubst %.c,$(OUT)/%.o,$(filter-out tests/unit/test_%,$(wildcard tests/unit/*.c)))
CONV := $(patsubst tests/conversation/%.c,$(OUT)/tests/conversation/%,$(wildcard tests/conversation/test_*.c))
CONV_HELP := $(patsubst %.c,$(OUT)/%.o,$(filter-out tests/conversation/test_%,$(wildcard tests/conversation/*.c)))
GOLDEN := $(patsubst tests/golden/run.c,$(OUT)/tests/golden/run,$(wildcard tests/golden/run.c))
GOLDEN_OBJ := $(patsubst %.c,$(OUT)/%.o,$(wildcard tests/golden/*.c))
FUZZ := $(patsubst tests/fuzz/%.c,$(OUT)/tests/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_HELP := $(patsubst %.c,$(OUT)/%.o,$(filter-out tests/fuzz/fuzz_%,$(wildcard tests/fuzz/*.c)))

C_FILES = $(wildcard parser/*.c proxy/*.c proxy/*/*.c tests/*/*.c)
H_FILES = $(wildcard parser/*.h proxy/*.h proxy/*/*.h tests/*/*.h)

# ---- build ----------------------------------------------------------------------------------------------------------

.PHONY: all objects tests-built
all: $(if $(MAIN_OBJ),$(OUT)/pgseek,objects) $(if $(filter release,$(MODE)),$(if $(MAIN_OBJ),$(BUILD)/pgseek))
objects: $(LIBRARIES)
tests-built: $(UNIT) $(CONV) $(GOLDEN)

# The released program has a short path; the others stay in their mode's folder.
$(BUILD)/pgseek: $(OUT)/pgseek
	@cp -f $< $@.new && mv -f $@.new $@

$(OUT)/pgseek: $(MAIN_OBJ) $(LIBRARIES)
	@echo "  LINK  $@"
	@$(CC) $(if $(LTO),$(ALL_CFLAGS)) $(ALL_LDFLAGS) -o $@ $(MAIN_OBJ) -Wl,--start-group $(LIBRARIES) -Wl,--end-group $(LIBS)

$(OUT)/libpgseek.a: $(PARSER_OBJ)
$(OUT)/libproxy.a: $(PROXY_OBJ)
$(OUT)/%.a:
	@echo "  AR    $@"
	@mkdir -p $(@D) && rm -f $@ && ar rcs $@ $^

$(OUT)/%.o: %.c $(OUT)/flags
	@echo "  CC    $@"
	@mkdir -p $(@D) && $(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

# Objects of other flags or another compiler are not ours to link.
.PHONY: always
$(OUT)/flags: always
	@mkdir -p $(@D)
	@printf '%s\n' '$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS)' | cmp -s - $@ || printf '%s\n' '$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS)' >$@

define link_test
@echo "  LINK  $@"
@$(CC) $(ALL_LDFLAGS) $(if $(LTO),-fno-lto) $(1) -o $@ $(filter %.o,$^) -Wl,--start-group $(LIBRARIES) -Wl,--end-group $(LIBS)
endef

$(UNIT): $(OUT)/%: $(OUT)/%.o $(UNIT_HELP) $(LIBRARIES)
	$(call link_test,) -lcmocka
$(CONV): $(OUT)/%: $(OUT)/%.o $(CONV_HELP) $(LIBRARIES)
	$(call link_test,) -lcmocka
$(GOLDEN): $(GOLDEN_OBJ) $(LIBRARIES)
	$(call link_test,)
$(FUZZ): $(OUT)/%: $(OUT)/%.o $(FUZZ_HELP) $(LIBRARIES)
	$(call link_test,-fsanitize=fuzzer)

-include $(shell find $(OUT) -name '*.d' 2>/dev/null)

# ---- checks of seconds ----------------------------------------------------------------------------------------------

SAN_ENV := ASAN_OPTIONS=detect_leaks=1:abort_on_error=0:exitcode=99 UBSAN_OPTIONS=print_stacktrace=1 \
           TSAN_OPTIONS=halt_on_error=1:exitcode=99

# Runs one test program, quietly when it passes.
define run_test
@mkdir -p $(OUT)/log
@if $(SAN_ENV) $(1) >$(OUT)/log/$(2).log 2>&1; then echo "  ok    $(2)"; \
 else echo "  FAIL  $(2)"; cat $(OUT)/log/$(2).log; exit 1; fi
endef

.PHONY: check unit golden golden-accept conversation layers reference reference-accept
check: unit golden conversation layers reference
	@echo "check: passed ($(MODE): $(words $(UNIT)) unit programs, $(words $(CONV)) conversation programs, golden, layers, reference)"

unit: $(addprefix run-unit-,$(notdir $(UNIT)))
run-unit-%: $(OUT)/tests/unit/%
	$(call run_test,$<,$*)
conversation: $(addprefix run-conv-,$(notdir $(CONV)))
run-conv-%: $(OUT)/tests/conversation/%
	$(call run_test,$<,$*)
golden: $(GOLDEN)
	$(if $(GOLDEN),$(call run_test,$(GOLDEN) tests/golden/cases,golden))
golden-accept: $(GOLDEN)
	$(GOLDEN) --accept tests/golden/cases
layers: $(OUT)/libpgseek.a
	@tests/layers.sh $(OUT)/libpgseek.a
reference: $(if $(MAIN_OBJ),$(OUT)/pgseek)
	$(if $(and $(MAIN_OBJ),$(wildcard tests/reference.sh)),@$(SAN_ENV) tests/reference.sh $(OUT)/pgseek)

reference-accept: $(OUT)/pgseek
	tests/reference.sh $(OUT)/pgseek --write

# ---- everything else --------------------------------------------------------------------------------------------------

.PHONY: test e2e san tsan fuzz lint format format-check tidy bench demo deps cover install uninstall clean help
# Set-up comes first and alone: the makefile must be read again once pkg-config and its packages are there.
test:
	@tests/setup.sh build test
	@$(MAKE) --no-print-directory all
	@$(MAKE) --no-print-directory check
	@$(MAKE) --no-print-directory e2e

e2e: all
	@env $(SAN_ENV) PGSEEK_BIN="$(abspath $(OUT)/pgseek)" $(PYTHON) -m pytest -q -rs -p no:cacheprovider \
	    -n $(PYTEST_JOBS) --dist loadfile tests/e2e $(PYTEST_ARGS)

san:
	@tests/setup.sh build test
	@$(MAKE) --no-print-directory MODE=san check
	@$(MAKE) --no-print-directory MODE=san e2e

tsan:
	@$(MAKE) --no-print-directory MODE=tsan e2e

FUZZ_PROGRAMS := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
fuzz:
	@tests/setup.sh build fuzz
	@$(MAKE) --no-print-directory MODE=fuzz CC=clang fuzz-run
.PHONY: fuzz-run
fuzz-run: $(addprefix fuzz-run-,$(FUZZ_PROGRAMS))
	@echo "fuzz: passed ($(words $(FUZZ_PROGRAMS)) targets, $(FUZZ_SECONDS) s each)"
# What is found goes to the build folder; tests/fuzz/corpus/<name> holds the seeds.
fuzz-run-%: $(OUT)/tests/fuzz/fuzz_%
	@mkdir -p $(OUT)/corpus/$* $(OUT)/found
	$(call run_test,$< -max_total_time=$(FUZZ_SECONDS) -timeout=20 -rss_limit_mb=4096 -artifact_prefix=$(OUT)/found/$*- \
	    $(OUT)/corpus/$* $(wildcard tests/fuzz/corpus/$*),fuzz_$*)

lint:
	@tests/setup.sh build lint
	@$(MAKE) --no-print-directory format-check
	@$(MAKE) --no-print-directory layers
	@$(MAKE) --no-print-directory WERROR=1 CC=gcc BUILD=$(BUILD)/lint-gcc all tests-built
	@$(MAKE) --no-print-directory WERROR=1 CC=clang BUILD=$(BUILD)/lint-clang all tests-built
	@$(MAKE) --no-print-directory tidy
	@echo "lint: passed"

# One version of the formatter and of the linter decides: others lay out lines, and know rules, of their own.
LLVM_PINNED := 14
is_pinned = $(findstring version $(LLVM_PINNED).,$(shell $(1) --version 2>/dev/null))

format:
	clang-format -i $(C_FILES) $(H_FILES)
format-check:
ifneq ($(call is_pinned,clang-format),)
	@clang-format --dry-run $(C_FILES) $(H_FILES) 2>&1 \
	    | sed -n 's/^\([^ :]*:[0-9]*\):.*clang-format-violations.*/\1: not as "make format" has it/p' \
	    | { ! grep . ; } && echo "  ok    format"
else
	@echo "  skip  format: clang-format $(LLVM_PINNED) decides"
endif

ifneq ($(call is_pinned,clang-tidy),)
tidy: $(addsuffix .tidy,$(wildcard parser/*.c proxy/*.c proxy/*/*.c))
else
tidy:
	@echo "  skip  tidy: clang-tidy $(LLVM_PINNED) decides"
endif
%.c.tidy: %.c always
	@clang-tidy --quiet --warnings-as-errors='*' $< -- $(STD) $(shell pkg-config --cflags $(PACKAGES)) 2>/dev/null \
	    && echo "  ok    tidy $<"

# A program of the bench: one file, libuv at most.
$(OUT)/tests/bench/%: $(OUT)/tests/bench/%.o
	@echo "  LINK  $@"
	@$(CC) $(ALL_LDFLAGS) -o $@ $< $(LIBS)
.PHONY: bench-programs
bench-programs: $(patsubst %.c,$(OUT)/%,$(wildcard tests/bench/*.c))

bench:
	@tests/setup.sh build bench
	@$(MAKE) --no-print-directory all bench-programs
	@PGSEEK_BIN="$(abspath $(BUILD)/pgseek)" BENCH_BIN="$(abspath $(OUT)/tests/bench)" $(PYTHON) tests/bench/run.py

demo:
	@tests/setup.sh build demo
	@$(MAKE) --no-print-directory all
	@PGSEEK_BIN="$(abspath $(BUILD)/pgseek)" tests/demo/run.sh

deps:
	@tests/setup.sh build test fuzz lint bench demo

cover:
	@rm -rf $(BUILD)/cover
	@$(MAKE) --no-print-directory MODE=cover check
	@$(MAKE) --no-print-directory MODE=cover e2e || true
	@cd $(BUILD)/cover && gcov -n $$(find parser proxy -name '*.gcda') 2>/dev/null \
	    | awk '/^File .(parser|proxy)/ { f = $$2 } /^Lines executed/ { if (f) print $$0, f; f = "" }' | sort -t: -k2 -n

install: all
	install -D -m 755 $(BUILD)/pgseek $(DESTDIR)$(PREFIX)/bin/pgseek
	$(if $(wildcard proxy.conf.example),install -D -m 644 proxy.conf.example $(DESTDIR)$(PREFIX)/share/doc/pgseek/proxy.conf.example)
uninstall:
	rm -rf $(DESTDIR)$(PREFIX)/bin/pgseek $(DESTDIR)$(PREFIX)/share/doc/pgseek

clean:
	rm -rf $(BUILD)

help:
	@echo "all            build/pgseek"
	@echo "check          unit, golden, conversations, layers, reference: seconds (parts: unit golden conversation layers reference)"
	@echo "e2e            tests against private PostgreSQLs; PYTEST_ARGS='-k copy' selects, PYTEST_JOBS=1 runs one at a time"
	@echo "test           installs what is missing, then all, check, e2e"
	@echo "san            check and e2e under AddressSanitizer and UBSan, leaks included"
	@echo "tsan           e2e under ThreadSanitizer"
	@echo "fuzz           every fuzz target for FUZZ_SECONDS=$(FUZZ_SECONDS)"
	@echo "lint           format, clang-tidy, gcc and clang with warnings as errors, layers"
	@echo "format         rewrites the sources with clang-format"
	@echo "golden-accept  takes the present output of the golden tests as expected"
	@echo "reference-accept  renews docs/REFERENCE.md and proxy.conf.example from the tables"
	@echo "bench          pgseek beside PgBouncer and a bare splicer"
	@echo "demo           a million rows, two walks, a table to read"
	@echo "cover          lines executed per file by check and e2e"
	@echo "deps           installs the packages that all of this needs (Debian)"
	@echo "install        DESTDIR=, PREFIX=/usr/local"
	@echo "clean          removes $(BUILD)/"
