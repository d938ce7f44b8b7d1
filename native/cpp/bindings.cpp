// The Python module. Whatever comes in is checked here: beyond this file sizes and token ids are taken for granted.
#include "engine.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <thread>

namespace nb = nanobind;
using namespace nb::literals;

namespace headway {
namespace {

using Bytes = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Found = std::tuple<Ids, float, float, bool>;
// Tokens that open, tokens that close them, leaves; the leaves of each sentence; how many nodes may open in a row; the
// reward of a leaf.
using Form = std::tuple<Ids, Ids, Ids, std::vector<Ids>, std::optional<int>, double>;
using Table = std::tuple<int, int, nb::ndarray<nb::numpy, float, nb::ndim<1>>>; // rows, columns, numbers

constexpr int MOST_BEAM = 4096;
constexpr int MOST_ROWS = 1 << 20;
constexpr int MOST_LIMIT = 1 << 24;
constexpr int MOST_SIZE = 1 << 20;

[[noreturn]] void refuse(const std::string &what) { throw std::invalid_argument(what); }

template <class Choice> Choice chosen(const std::map<std::string, Choice> &choices, const std::string &name, const char *what) {
    const auto found = choices.find(name);
    if (found == choices.end()) refuse(std::string(what) + " is " + name + ", which the engine does not know");
    return found->second;
}

const std::map<std::string, Positions> POSITIONS = {{"none", Positions::none},
                                                    {"sinusoidal", Positions::sinusoidal},
                                                    {"learned", Positions::learned},
                                                    {"rope", Positions::rope},
                                                    {"alibi", Positions::alibi},
                                                    {"words", Positions::words}};
const std::map<std::string, Activation> ACTIVATIONS = {
    {"relu", Activation::relu}, {"gelu", Activation::gelu}, {"silu", Activation::silu}};

// A model whose arrays belong to Python, which keeps them as long as this lives.
struct Loaded {
    std::shared_ptr<const Model> model;
    std::vector<Bytes> kept;
};

void check_range(const char *what, long found, long least, long most) {
    if (found < least || found > most)
        refuse(std::string(what) + " is " + std::to_string(found) + "; wanted " + std::to_string(least) + " to " +
               std::to_string(most));
}

void check_ids(const std::vector<Ids> &sentences, int vocab_size, const char *what, bool may_be_empty) {
    for (size_t i = 0; i < sentences.size(); ++i) {
        if (sentences[i].empty() && !may_be_empty)
            refuse(std::string(what) + " " + std::to_string(i + 1) +
                   " has no tokens; wanted one or more, the end of the sentence among them");
        for (const int token : sentences[i])
            if (token < 0 || token >= vocab_size)
                refuse(std::string(what) + " " + std::to_string(i + 1) + " has the token " + std::to_string(token) +
                       "; wanted 0 to " + std::to_string(vocab_size - 1) + ", the ids of the vocabulary");
    }
}

template <class Number, class... Form> std::vector<Number> copied(const nb::ndarray<const Number, Form...> &array) {
    return {array.data(), array.data() + array.size()};
}

// A shortlist of Python's, which sessions share.
struct Listed {
    using Offsets = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
    using Tokens = nb::ndarray<const int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

    // The numbers are copied: what was checked stays so, whatever becomes of the file that they were mapped from.
    Listed(const Offsets &offsets, const Tokens &tokens, const Tokens &always, int target_vocab)
        : shortlist(std::make_shared<const Shortlist>(copied(offsets), copied(tokens), copied(always), target_vocab)) {}

    std::vector<std::vector<int32_t>> allowed(const std::vector<Ids> &sources) const {
        check_ids(sources, shortlist->source_vocab(), "source", true);
        std::vector<std::vector<int32_t>> found;
        for (const Ids &source : sources) found.push_back(shortlist->allowed({source, {}, 0, {}}));
        return found;
    }

    std::shared_ptr<const Shortlist> shortlist;
};

// The shortlist for a model, null if there is none.
std::shared_ptr<const Shortlist> shortlist_for(const Config &config, const Listed *listed) {
    if (listed == nullptr) return nullptr;
    const auto &shortlist = listed->shortlist;
    if (shortlist->source_vocab() != config.source_vocab || shortlist->target_vocab() != config.target_vocab)
        refuse("the shortlist is for " + std::to_string(shortlist->source_vocab()) + " source and " +
               std::to_string(shortlist->target_vocab()) + " target tokens; the model has " +
               std::to_string(config.source_vocab) + " and " + std::to_string(config.target_vocab));
    return shortlist;
}

// The calls under way, of all sessions. At the end of the interpreter they are cancelled and waited for: a thread that
// asks for the GIL after that would be ended in the midst of C++, and the process with it.
class Calls {
  public:
    // One call; made and destroyed with the GIL held. Throws Cancelled at the end of the interpreter.
    class Call {
      public:
        explicit Call(Calls &calls) : calls_(calls) {
            if (calls_.is_closed_) throw Cancelled();
            ++calls_.under_way_;
        }
        ~Call() { --calls_.under_way_; }
        Call(const Call &) = delete;
        Call &operator=(const Call &) = delete;

      private:
        Calls &calls_;
    };

    bool is_closed() const { return is_closed_; }

    void close() {
        is_closed_ = true;
        const nb::gil_scoped_release release;
        // Bounded, so that an exit never hangs.
        const auto last = std::chrono::steady_clock::now() + std::chrono::seconds(10);
        while (under_way_ > 0 && std::chrono::steady_clock::now() < last)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }

    // In a forked process no call of the parent goes on.
    void forget() { under_way_ = 0; }

  private:
    std::atomic<int> under_way_{0};
    std::atomic<bool> is_closed_{false};
};

// Lets Python see a Ctrl-C while the engine computes. Signals are handled on Python's main thread alone, so a call from
// another one never asks for the GIL before it has ended.
Poll poll_of(const Calls &calls) {
    const nb::module_ threading = nb::module_::import_("threading");
    const bool is_main = threading.attr("get_ident")().equal(threading.attr("main_thread")().attr("ident"));
    return [&calls, is_main] {
        if (calls.is_closed()) throw Cancelled();
        if (!is_main) return;
        const nb::gil_scoped_acquire acquired;
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
    };
}

class Session {
  public:
    Session(const Loaded &loaded, const std::string &kernels, int threads, const Listed *shortlist, std::shared_ptr<Calls> calls)
        : model_(loaded.model), kept_(loaded.kept), calls_(std::move(calls)),
          engine_(loaded.model, kernels, threads, shortlist_for(loaded.model->config, shortlist)) {}

    std::vector<std::vector<Found>> search(std::vector<Ids> sources, std::vector<Ids> prefixes,
                                           const std::vector<int> &limits, int beam, int n_best, double length_penalty,
                                           int no_repeat, Ids never, int rows, std::optional<Form> form,
                                           const Cancel *cancel) {
        const Config &config = model_->config;
        if (prefixes.size() != sources.size() || limits.size() != sources.size())
            refuse("there are " + std::to_string(sources.size()) + " sources, " + std::to_string(prefixes.size()) +
                   " prefixes and " + std::to_string(limits.size()) + " limits; wanted as many of each");
        check_range("beam", beam, 1, MOST_BEAM);
        check_range("n-best", n_best, 1, beam);
        check_range("rows", rows, 1, MOST_ROWS);
        check_range("the length of n-grams that may not repeat", no_repeat, 0, std::numeric_limits<int>::max());
        if (!(length_penalty >= 0.0 && std::isfinite(length_penalty)))
            refuse("the length penalty is " + std::to_string(length_penalty) + "; wanted a number from 0 up");
        check_ids(sources, config.source_vocab, "source", false);
        check_ids(prefixes, config.target_vocab, "prefix", true);
        std::vector<Request> requests(sources.size());
        for (size_t i = 0; i < sources.size(); ++i) {
            check_limit(i, limits[i], prefixes[i].size(), beam);
            check_positions(i, sources[i].size(), static_cast<size_t>(limits[i]));
            requests[i] = {std::move(sources[i]), std::move(prefixes[i]), limits[i], {}};
        }
        never.push_back(PAD);
        never.push_back(BOS);
        std::sort(never.begin(), never.end());
        Settings settings{beam, n_best, no_repeat, length_penalty, std::move(never), nullptr, 0.0F};
        if (form) give_form(std::move(*form), requests, settings);
        const Calls::Call call(*calls_);
        const Poll poll = poll_of(*calls_);
        std::vector<std::vector<Hypothesis>> results;
        {
            const nb::gil_scoped_release release;
            results = engine_.search(requests, settings, rows, given(cancel), poll);
        }
        std::vector<std::vector<Found>> found(results.size());
        for (size_t i = 0; i < results.size(); ++i)
            for (Hypothesis &one : results[i])
                found[i].emplace_back(std::move(one.tokens), one.log_prob, one.score, one.is_cut);
        return found;
    }

    std::vector<std::vector<float>> score(const std::vector<Ids> &sources, const std::vector<Ids> &targets, const Cancel *cancel) {
        check_pairs(sources, targets);
        const Calls::Call call(*calls_);
        const Poll poll = poll_of(*calls_);
        const nb::gil_scoped_release release;
        return engine_.score(sources, targets, given(cancel), poll);
    }

    std::vector<Table> attend(const std::vector<Ids> &sources, const std::vector<Ids> &targets, const Cancel *cancel) {
        check_pairs(sources, targets);
        const Calls::Call call(*calls_);
        const Poll poll = poll_of(*calls_);
        std::vector<Attention> found;
        {
            const nb::gil_scoped_release release;
            found = engine_.attend(sources, targets, given(cancel), poll);
        }
        std::vector<Table> tables;
        for (Attention &one : found) tables.push_back(table_of(std::move(one)));
        return tables;
    }

    const char *kernels() const { return engine_.kernels(); }
    int threads() const { return engine_.threads(); }

  private:
    const Cancel &given(const Cancel *cancel) const { return cancel == nullptr ? never_ : *cancel; }

    // Outputs must be trees of that form.
    void give_form(Form form, std::vector<Request> &requests, Settings &settings) const {
        auto &[opening, closing, leaves, wanted, most, reward] = form;
        if (!(reward >= 0.0 && std::isfinite(reward))) refuse("the reward of a leaf is " + std::to_string(reward) + "; wanted a number from 0 up");
        if (settings.no_repeat > 0) refuse("outputs must be trees, and may not repeat; wanted one of the two rules");
        if (engine_.has_shortlist()) refuse("outputs must be trees, and there is a shortlist; wanted one of the two rules");
        if (wanted.size() != requests.size())
            refuse("there are " + std::to_string(requests.size()) + " sources, and leaves for " + std::to_string(wanted.size()) +
                   "; wanted as many of each");
        const auto brackets = std::make_shared<const Brackets>(
            opening, closing, leaves, most.value_or(std::numeric_limits<int>::max()), model_->config.target_vocab);
        check_ids(wanted, model_->config.target_vocab, "tree", true);
        for (size_t i = 0; i < requests.size(); ++i) {
            Request &request = requests[i];
            const std::string sentence = " of sentence " + std::to_string(i + 1);
            if (!request.prefix.empty()) refuse("the output" + sentence + " must be a tree, and begin with a prefix; wanted one of the two rules");
            if (static_cast<size_t>(request.limit) <= wanted[i].size())
                refuse("the tree" + sentence + " has " + std::to_string(wanted[i].size()) + " leaves, and its output may have " +
                       std::to_string(request.limit) + " tokens; wanted one more than leaves, or a longer output");
            for (const int leaf : wanted[i])
                if (leaf != PAD && brackets->part(leaf) != Brackets::Part::leaf)
                    refuse("the tree" + sentence + " is to have the leaf " + std::to_string(leaf) + ", which is none; wanted a leaf, or " +
                           std::to_string(PAD) + " for any");
            request.leaves = std::move(wanted[i]);
        }
        settings.brackets = brackets;
        settings.leaf_reward = static_cast<float>(reward);
    }

    static void check_limit(size_t place, int limit, size_t prefix, int beam) {
        const std::string what = "limit " + std::to_string(place + 1) + " is " + std::to_string(limit) + "; wanted ";
        if (limit < 1 || static_cast<size_t>(limit) <= prefix)
            refuse(what + std::to_string(prefix + 1) + " or more: the forced prefix, and the end of the sentence");
        // places in a cache are counted in 32 bits
        const int most = std::min(MOST_LIMIT, std::numeric_limits<int32_t>::max() / beam);
        if (limit > most) refuse(what + "at most " + std::to_string(most) + " with a beam of " + std::to_string(beam));
    }

    // To NumPy without a copy.
    static Table table_of(Attention &&attention) {
        auto kept = std::make_unique<std::vector<float>>(std::move(attention.weights));
        float *data = kept->data();
        const size_t size = kept->size();
        const nb::capsule owner(kept.get(), [](void *all) noexcept { delete static_cast<std::vector<float> *>(all); });
        static_cast<void>(kept.release());
        return {attention.target, attention.source, {data, {size}, owner}};
    }

    void check_pairs(const std::vector<Ids> &sources, const std::vector<Ids> &targets) const {
        if (sources.size() != targets.size())
            refuse("there are " + std::to_string(sources.size()) + " sources and " + std::to_string(targets.size()) +
                   " targets; wanted as many of each");
        check_ids(sources, model_->config.source_vocab, "source", false);
        check_ids(targets, model_->config.target_vocab, "target", false);
        for (size_t i = 0; i < sources.size(); ++i) check_positions(i, sources[i].size(), targets[i].size());
    }

    void check_positions(size_t place, size_t source, size_t target) const {
        const Config &config = model_->config;
        if (config.positions == Positions::learned && std::max(source, target) > static_cast<size_t>(config.max_positions))
            refuse("sentence " + std::to_string(place + 1) + " has, or its output may have, " +
                   std::to_string(std::max(source, target)) + " tokens; the model has learned " +
                   std::to_string(config.max_positions) + " positions");
    }

    std::shared_ptr<const Model> model_;
    std::vector<Bytes> kept_;
    std::shared_ptr<Calls> calls_;
    const Cancel never_{false};
    Engine engine_;
};

Loaded load(const std::map<std::string, int> &sizes, const std::map<std::string, double> &numbers,
            const std::map<std::string, std::string> &names, const std::map<std::string, Bytes> &arrays) {
    Config config;
    const auto size = [&](const char *name) {
        const auto found = sizes.find(name);
        if (found == sizes.end()) refuse(std::string("the configuration has no ") + name);
        return found->second;
    };
    const auto number = [&](const char *name) {
        const auto found = numbers.find(name);
        if (found == numbers.end()) refuse(std::string("the configuration has no ") + name);
        return static_cast<float>(found->second);
    };
    const auto name = [&](const char *key) {
        const auto found = names.find(key);
        if (found == names.end()) refuse(std::string("the configuration has no ") + key);
        return found->second;
    };
    config.d_model = size("d_model");
    config.d_ff = size("d_ff");
    config.heads = {size("num_heads"), size("num_kv_heads"), size("d_k"), size("d_v")};
    config.encoder_layers = size("num_encoder_layers");
    config.decoder_layers = size("num_decoder_layers");
    config.source_vocab = size("source_vocab_size");
    config.target_vocab = size("vocab_size");
    config.max_positions = size("max_positions");
    config.pre_norm = size("pre_norm") != 0;
    config.centred_norm = size("centred_norm") != 0;
    config.gated = size("gated") != 0;
    config.cross_words = size("cross_words") != 0;
    config.epsilon = number("norm_epsilon");
    config.encoder_residual = number("encoder_residual");
    config.decoder_residual = number("decoder_residual");
    config.embedding_scale = number("embedding_scale");
    config.positions = chosen(POSITIONS, name("positions"), "the scheme of positions");
    config.activation = chosen(ACTIVATIONS, name("activation"), "the activation");
    Arrays found;
    Loaded loaded;
    for (const auto &[key, array] : arrays) {
        found[key] = {array.data(), array.size()};
        loaded.kept.push_back(array);
    }
    loaded.model = std::make_shared<const Model>(config, found);
    return loaded;
}

// For tests: what one set of kernels computes.
class Probe {
  public:
    explicit Probe(const std::string &name) : kernels_(find_kernels(name.c_str())) {
        if (kernels_ == nullptr) refuse("no kernels named " + name + " here");
    }

    using Floats = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
    using Out = nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
    using Ints = nb::ndarray<int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
    using Scale = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

    void product(const Bytes &weight, const std::optional<Scale> &scale, const std::optional<Scale> &bias, int outputs,
                 int inputs, const Floats &rows, bool relu, Out &out) const {
        const Matrix matrix = described(weight, scale, bias, outputs, inputs);
        if (rows.shape(1) != static_cast<size_t>(inputs) || out.shape(0) != rows.shape(0) ||
            out.shape(1) != padded(static_cast<size_t>(outputs)))
            refuse("the arrays do not fit");
        Sink sink{out.data(), out.shape(1)};
        sink.relu = relu;
        Team team(1);
        Arithmetic arithmetic(*kernels_, team);
        FloatTable table;
        table.resize(rows.shape(0), rows.shape(1));
        for (size_t row = 0; row < rows.shape(0); ++row)
            std::copy_n(rows.data() + row * rows.shape(1), rows.shape(1), table.at(row));
        arithmetic.multiply(matrix, table.rows(), sink);
    }

    // The whole-number sums of 8-bit rows x matrix.
    void sums(const Bytes &weight, int outputs, int inputs, const nb::ndarray<const int8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu> &rows,
              Ints &out) const {
        static constexpr float one = 1.0F;
        check_range("outputs", outputs, 1, MOST_SIZE);
        check_range("inputs", inputs, 1, MOST_INT8_INPUTS);
        Matrix matrix;
        matrix.data = weight.data();
        matrix.scale = &one;
        matrix.outputs = outputs;
        matrix.inputs = inputs;
        const auto count = rows.shape(0);
        const size_t stride = padded(static_cast<size_t>(inputs), 64);
        if (weight.size() != padded(static_cast<size_t>(outputs)) * padded(static_cast<size_t>(inputs), GROUP) ||
            rows.shape(1) != static_cast<size_t>(inputs) || out.shape(0) != count ||
            out.shape(1) != padded(static_cast<size_t>(outputs)))
            refuse("the arrays do not fit");
        Numbers<int8_t> data(count * stride);
        std::vector<int32_t> sum(count);
        std::vector<float> scale(count, 1.0F);
        for (size_t row = 0; row < count; ++row)
            for (size_t i = 0; i < rows.shape(1); ++i) {
                data[row * stride + i] = rows(row, i);
                sum[row] += rows(row, i);
            }
        std::vector<int32_t> found(count * BLOCK);
        for (int block = 0; block < matrix.blocks(); ++block) {
            kernels_->sums_int8(matrix, {data.data(), scale.data(), sum.data(), stride, static_cast<int>(count)}, block, found.data());
            for (size_t row = 0; row < count; ++row)
                for (size_t i = 0; i < BLOCK; ++i) out(row, static_cast<size_t>(block) * BLOCK + i) = found[row * BLOCK + i];
        }
    }

    std::tuple<std::vector<int>, float> quantise(const Floats &row) const {
        check_row(row);
        std::vector<int8_t> out(padded(row.shape(1), 64));
        float scale = 0.0F;
        int32_t sum = 0;
        kernels_->quantise(blocks_of(row.data(), row.shape(1)).data(), static_cast<int>(row.shape(1)), out.data(), out.size(), &scale, &sum);
        return {{out.begin(), out.begin() + static_cast<long>(row.shape(1))}, scale};
    }

    void norm(const Floats &rows, const Scale &gain, const std::optional<Scale> &bias, float epsilon, bool centred, Out &out) const {
        if (gain.size() != rows.shape(1) || (bias && bias->size() != rows.shape(1)) || out.shape(0) != rows.shape(0) ||
            out.shape(1) != rows.shape(1))
            refuse("the arrays do not fit");
        for (size_t row = 0; row < rows.shape(0); ++row)
            kernels_->norm(rows.data() + row * rows.shape(1), static_cast<int>(rows.shape(1)), gain.data(),
                           bias ? bias->data() : nullptr, epsilon, centred, out.data() + row * out.shape(1));
    }

    void activate(const std::string &name, Out &rows) const {
        if (rows.shape(1) % BLOCK != 0) refuse("rows must be whole blocks");
        for (size_t row = 0; row < rows.shape(0); ++row)
            kernels_->activate(rows.data() + row * rows.shape(1), static_cast<int>(rows.shape(1)),
                               chosen(ACTIVATIONS, name, "the activation"));
    }

    void gate(const std::string &name, const Floats &gates, const Floats &rows, Out &out) const {
        if (rows.shape(1) % BLOCK != 0 || gates.shape(0) != rows.shape(0) || gates.shape(1) != rows.shape(1) ||
            out.shape(0) != rows.shape(0) || out.shape(1) != rows.shape(1))
            refuse("the arrays do not fit, or are no whole blocks");
        for (size_t row = 0; row < rows.shape(0); ++row) {
            const size_t at = row * rows.shape(1);
            kernels_->gate(gates.data() + at, rows.data() + at, static_cast<int>(rows.shape(1)),
                           chosen(ACTIVATIONS, name, "the activation"), out.data() + at);
        }
    }

    std::tuple<float, float, std::vector<int>> scan(const Floats &row, float threshold) const {
        check_row(row);
        float peak = 0.0F, sum = 0.0F;
        std::vector<int32_t> places(row.shape(1));
        const Numbers<float> logits = blocks_of(row.data(), row.shape(1));
        const auto size = static_cast<int>(row.shape(1));
        kernels_->scan(logits.data(), size, &peak, &sum);
        const int found = kernels_->above(logits.data(), size, threshold, places.data());
        return {peak, sum, {places.begin(), places.begin() + found}};
    }

    const char *name() const { return kernels_->name; }

    // One query over a past that stands where ``offset`` says; all heads. Gives (weights (queries x places), mixture).
    void attend(const Floats &query, const Floats &key, const Floats &value, const std::vector<int> &offset,
                const std::tuple<int, int, int, int> &sizes, const std::optional<Scale> &slope, bool is_short, Out &weights, Out &out) const {
        const Heads heads = described(sizes);
        const size_t count = offset.size(), width = padded(count);
        const bool fits = query.shape(1) == static_cast<size_t>(heads.queries * heads.d_k) &&
                          key.shape(1) == static_cast<size_t>(heads.keys * heads.d_k) &&
                          value.shape(1) == static_cast<size_t>(heads.keys * heads.d_v) && key.shape(0) == value.shape(0) &&
                          weights.shape(0) == static_cast<size_t>(heads.queries) && weights.shape(1) == count &&
                          out.shape(1) == static_cast<size_t>(heads.queries * heads.d_v) && query.shape(0) == 1 &&
                          out.shape(0) == 1 && (!slope || slope->size() == static_cast<size_t>(heads.queries));
        for (const int place : offset)
            if (place < 0 || static_cast<size_t>(place) >= key.shape(0)) refuse("an offset lies outside");
        if (!fits || count == 0) refuse("the arrays do not fit");
        Numbers<float> room(weights.shape(0) * width);
        const std::vector<int32_t> places(offset.begin(), offset.end());
        const Cache keys = cached(key.data(), key.size(), is_short), values = cached(value.data(), value.size(), is_short);
        kernels_->attend(query.data(), {keys.data(), values.data(), is_short, key.shape(1), value.shape(1), places.data(), static_cast<int>(count)},
                         heads, slope ? slope->data() : nullptr, room.data(), out.data());
        for (size_t head = 0; head < weights.shape(0); ++head)
            std::copy_n(room.data() + head * width, count, weights.data() + head * count);
    }

    // Queries (rows x heads) over one source (places x heads).
    void attend_source(const Floats &queries, const Floats &key, const Floats &value, const std::tuple<int, int, int, int> &sizes,
                       const std::optional<Scale> &slope, int centre, bool is_short, Out &weights, Out &out) const {
        const Heads heads = described(sizes);
        const size_t rows = queries.shape(0), source = key.shape(0), width = padded(source);
        const bool fits = queries.shape(1) == static_cast<size_t>(heads.queries * heads.d_k) &&
                          key.shape(1) == static_cast<size_t>(heads.keys * heads.d_k) && value.shape(0) == source &&
                          value.shape(1) == static_cast<size_t>(heads.keys * heads.d_v) && out.shape(0) == rows &&
                          out.shape(1) == static_cast<size_t>(heads.queries * heads.d_v) && source > 0 &&
                          weights.shape(0) == rows * static_cast<size_t>(heads.queries) && weights.shape(1) == source &&
                          (!slope || slope->size() == static_cast<size_t>(heads.queries));
        if (!fits) refuse("the arrays do not fit");
        Numbers<float> turned(key.shape(1) * width), room(weights.shape(0) * width);
        turn_keys(key.data(), key.shape(1), source, key.shape(1), turned.data());
        const Cache keys = cached(turned.data(), turned.size(), is_short), values = cached(value.data(), value.size(), is_short);
        kernels_->attend_source({queries.data(), queries.shape(1), static_cast<int>(rows)},
                                {keys.data(), values.data(), is_short, static_cast<int>(source)}, heads,
                                {slope ? slope->data() : nullptr, centre, nullptr, nullptr}, room.data(), out.data(), out.shape(1));
        for (size_t row = 0; row < weights.shape(0); ++row)
            std::copy_n(room.data() + row * width, source, weights.data() + row * source);
    }

    void narrow(const Floats &row, nb::ndarray<uint16_t, nb::ndim<2>, nb::c_contig, nb::device::cpu> &out) const {
        if (out.shape(0) != row.shape(0) || out.shape(1) != row.shape(1)) refuse("the arrays do not fit");
        kernels_->narrow(row.data(), row.size(), out.data());
    }

  private:
    Cache cached(const float *numbers, size_t count, bool is_short) const {
        Cache cache(is_short);
        cache.reserve(count);
        cache.put(*kernels_, 0, numbers, count);
        return cache;
    }

    static Numbers<float> blocks_of(const float *row, size_t size) {
        Numbers<float> blocks(padded(size));
        std::copy_n(row, size, blocks.data());
        return blocks;
    }

    static Heads described(const std::tuple<int, int, int, int> &sizes) {
        const auto [queries, keys, d_k, d_v] = sizes;
        check_range("heads of queries", queries, 1, 4096);
        check_range("heads of keys", keys, 1, queries);
        check_range("d_k", d_k, 1, 65536);
        check_range("d_v", d_v, 1, 65536);
        if (queries % keys != 0) refuse("heads of keys do not divide heads of queries");
        return {queries, keys, d_k, d_v};
    }

    static void check_row(const Floats &row) {
        if (row.shape(0) != 1) refuse("there are " + std::to_string(row.shape(0)) + " rows; wanted 1");
        check_range("the size of the row", static_cast<long>(row.shape(1)), 1, MOST_SIZE);
    }

    static Matrix described(const Bytes &weight, const std::optional<Scale> &scale, const std::optional<Scale> &bias, int outputs,
                            int inputs) {
        check_range("outputs", outputs, 1, MOST_SIZE);
        check_range("inputs", inputs, 1, scale ? MOST_INT8_INPUTS : MOST_SIZE);
        Matrix matrix;
        matrix.data = weight.data();
        matrix.outputs = outputs;
        matrix.inputs = inputs;
        const size_t all = padded(static_cast<size_t>(outputs));
        if (scale) matrix.scale = scale->data();
        if (bias) matrix.bias = bias->data();
        const bool fits = (!scale || scale->size() == all) && (!bias || bias->size() == all) &&
                          weight.size() == (matrix.is_int8() ? all * padded(static_cast<size_t>(inputs), GROUP)
                                                             : all * static_cast<size_t>(inputs) * sizeof(float));
        if (!fits) refuse("the arrays do not fit");
        return matrix;
    }

    const Kernels *kernels_;
};

} // namespace
} // namespace headway

NB_MODULE(_native, module) {
    using namespace headway;
    const auto calls = std::make_shared<Calls>();
    nb::module_::import_("atexit").attr("register")(nb::cpp_function([calls] { calls->close(); }));
    const nb::module_ os = nb::module_::import_("os");
    if (nb::hasattr(os, "register_at_fork"))
        os.attr("register_at_fork")("after_in_child"_a = nb::cpp_function([calls] { calls->forget(); }));
    nb::exception<Cancelled>(module, "CancelledError", PyExc_RuntimeError);
    nb::class_<Cancel>(module, "Cancel").def(nb::init<bool>(), "value"_a = false).def("set", [](Cancel &cancel) { cancel = true; });
    nb::class_<Loaded>(module, "Model")
        .def_static("load", &load, "sizes"_a, "numbers"_a, "names"_a, "arrays"_a);
    nb::class_<Listed>(module, "Shortlist")
        .def(nb::init<const Listed::Offsets &, const Listed::Tokens &, const Listed::Tokens &, int>(), "offsets"_a, "tokens"_a, "always"_a,
             nb::kw_only(), "target_vocab"_a)
        .def("allowed", &Listed::allowed, "sources"_a);
    nb::class_<Session>(module, "Session")
        .def(
            "__init__",
            [calls](Session *session, const Loaded &loaded, const std::string &kernels, int threads, const Listed *shortlist) {
                new (session) Session(loaded, kernels, threads, shortlist, calls);
            },
            "model"_a, nb::kw_only(), "kernels"_a = "auto", "threads"_a = 1, "shortlist"_a.none() = nb::none())
        .def("search", &Session::search, "sources"_a, nb::kw_only(), "prefixes"_a, "limits"_a, "beam"_a, "n_best"_a,
             "length_penalty"_a, "no_repeat"_a, "never"_a, "rows"_a, "form"_a.none() = nb::none(), "cancel"_a.none() = nb::none())
        .def("score", &Session::score, "sources"_a, "targets"_a, nb::kw_only(), "cancel"_a.none() = nb::none())
        .def("attend", &Session::attend, "sources"_a, "targets"_a, nb::kw_only(), "cancel"_a.none() = nb::none())
        .def_prop_ro("kernels", &Session::kernels)
        .def_prop_ro("threads", &Session::threads);
    nb::class_<Probe>(module, "Probe")
        .def(nb::init<const std::string &>(), "kernels"_a)
        .def("product", &Probe::product, "weight"_a, nb::kw_only(), "scale"_a.none(), "bias"_a.none(), "outputs"_a, "inputs"_a, "rows"_a,
             "relu"_a, "out"_a.noconvert())
        .def("sums", &Probe::sums, "weight"_a, nb::kw_only(), "outputs"_a, "inputs"_a, "rows"_a, "out"_a.noconvert())
        .def("quantise", &Probe::quantise, "row"_a)
        .def("norm", &Probe::norm, "rows"_a, nb::kw_only(), "gain"_a, "bias"_a.none(), "epsilon"_a, "centred"_a, "out"_a.noconvert())
        .def("activate", &Probe::activate, "name"_a, "rows"_a.noconvert())
        .def("gate", &Probe::gate, "name"_a, "gates"_a, "rows"_a, nb::kw_only(), "out"_a.noconvert())
        .def("scan", &Probe::scan, "row"_a, nb::kw_only(), "threshold"_a)
        .def("attend", &Probe::attend, "query"_a, nb::kw_only(), "key"_a, "value"_a, "offset"_a, "heads"_a, "slope"_a.none(),
             "is_short"_a, "weights"_a.noconvert(), "out"_a.noconvert())
        .def("attend_source", &Probe::attend_source, "queries"_a, nb::kw_only(), "key"_a, "value"_a, "heads"_a, "slope"_a.none(),
             "centre"_a, "is_short"_a, "weights"_a.noconvert(), "out"_a.noconvert())
        .def("narrow", &Probe::narrow, "row"_a, nb::kw_only(), "out"_a.noconvert())
        .def_prop_ro("name", &Probe::name);
    module.def("available", [] {
        std::vector<std::string> names;
        for (const char *name : {"avx512", "avx_vnni", "avx2", "portable"})
            if (find_kernels(name) != nullptr) names.emplace_back(name);
        return names;
    });
}
