// The Python module. Whatever comes in is checked here: beyond this file sizes and token ids are taken for granted.
#include "engine.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <map>

namespace nb = nanobind;
using namespace nb::literals;

namespace headway {
namespace {

using Bytes = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Found = std::tuple<Ids, float, float, bool>;

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
                                                    {"alibi", Positions::alibi}};
const std::map<std::string, Activation> ACTIVATIONS = {
    {"relu", Activation::relu}, {"gelu", Activation::gelu}, {"silu", Activation::silu}};

// A model whose arrays belong to Python, which keeps them as long as this lives.
struct Loaded {
    std::shared_ptr<const Model> model;
    std::vector<Bytes> kept;
};

void check_ids(const std::vector<Ids> &sentences, int vocab_size, const char *what, bool may_be_empty) {
    for (size_t i = 0; i < sentences.size(); ++i) {
        if (sentences[i].empty() && !may_be_empty) refuse(std::string(what) + " " + std::to_string(i + 1) + " is empty");
        for (const int token : sentences[i])
            if (token < 0 || token >= vocab_size)
                refuse(std::string(what) + " " + std::to_string(i + 1) + " has the token " + std::to_string(token) +
                       "; the vocabulary has " + std::to_string(vocab_size));
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
        for (const Ids &source : sources) found.push_back(shortlist->allowed({source, {}, 0}));
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

// Lets Python see a Ctrl-C while the engine computes.
void look_for_signals() {
    const nb::gil_scoped_acquire acquired;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

class Session {
  public:
    Session(const Loaded &loaded, const std::string &kernels, int threads, const Listed *shortlist)
        : model_(loaded.model), kept_(loaded.kept),
          engine_(loaded.model, kernels, threads, shortlist_for(loaded.model->config, shortlist)) {
        if (threads < 1 || threads > 1024) refuse("threads are " + std::to_string(threads) + "; wanted 1 to 1,024");
    }

    std::vector<std::vector<Found>> search(std::vector<Ids> sources, std::vector<Ids> prefixes,
                                           const std::vector<int> &limits, int beam, int n_best, double length_penalty,
                                           int no_repeat, Ids never, int rows, const Cancel *cancel) {
        const Config &config = model_->config;
        if (prefixes.size() != sources.size() || limits.size() != sources.size())
            refuse("sources, prefixes and limits are not equally many");
        if (beam < 1 || beam > 4096 || n_best < 1 || n_best > beam) refuse("the beam or the n-best is out of range");
        if (rows < 1 || rows > 1 << 20) refuse("rows are out of range");
        if (no_repeat < 0 || !(length_penalty >= 0.0)) refuse("the n-gram rule or the length penalty is below 0");
        check_ids(sources, config.source_vocab, "source", false);
        check_ids(prefixes, config.target_vocab, "prefix", true);
        std::vector<Request> requests(sources.size());
        for (size_t i = 0; i < sources.size(); ++i) {
            if (limits[i] <= static_cast<int>(prefixes[i].size()) || limits[i] > 1 << 24)
                refuse("limit " + std::to_string(i + 1) + " leaves no room for the end of the sentence, or is too large");
            check_positions(sources[i].size(), static_cast<size_t>(limits[i]));
            requests[i] = {std::move(sources[i]), std::move(prefixes[i]), limits[i]};
        }
        never.push_back(PAD);
        never.push_back(BOS);
        std::sort(never.begin(), never.end());
        const Settings settings{beam, n_best, no_repeat, length_penalty, std::move(never)};
        std::vector<std::vector<Hypothesis>> results;
        {
            const nb::gil_scoped_release release;
            results = engine_.search(requests, settings, rows, given(cancel), look_for_signals);
        }
        std::vector<std::vector<Found>> found(results.size());
        for (size_t i = 0; i < results.size(); ++i)
            for (Hypothesis &one : results[i])
                found[i].emplace_back(std::move(one.tokens), one.log_prob, one.score, one.is_cut);
        return found;
    }

    std::vector<std::vector<float>> score(const std::vector<Ids> &sources, const std::vector<Ids> &targets, const Cancel *cancel) {
        check_pairs(sources, targets);
        const nb::gil_scoped_release release;
        return engine_.score(sources, targets, given(cancel), look_for_signals);
    }

    std::vector<std::tuple<int, int, std::vector<float>>> attend(const std::vector<Ids> &sources,
                                                                 const std::vector<Ids> &targets, const Cancel *cancel) {
        check_pairs(sources, targets);
        const nb::gil_scoped_release release;
        std::vector<std::tuple<int, int, std::vector<float>>> found;
        for (Attention &one : engine_.attend(sources, targets, given(cancel), look_for_signals))
            found.emplace_back(one.target, one.source, std::move(one.weights));
        return found;
    }

    const char *kernels() const { return engine_.kernels(); }
    int threads() const { return engine_.threads(); }

  private:
    const Cancel &given(const Cancel *cancel) const { return cancel == nullptr ? never_ : *cancel; }

    void check_pairs(const std::vector<Ids> &sources, const std::vector<Ids> &targets) const {
        if (sources.size() != targets.size()) refuse("sources and targets are not equally many");
        check_ids(sources, model_->config.source_vocab, "source", false);
        check_ids(targets, model_->config.target_vocab, "target", false);
        for (size_t i = 0; i < sources.size(); ++i) check_positions(sources[i].size(), targets[i].size());
    }

    void check_positions(size_t source, size_t target) const {
        const Config &config = model_->config;
        if (config.positions == Positions::learned && std::max(source, target) > static_cast<size_t>(config.max_positions))
            refuse("a sentence of " + std::to_string(std::max(source, target)) + " tokens lies beyond the learned table of " +
                   std::to_string(config.max_positions) + " positions");
    }

    std::shared_ptr<const Model> model_;
    std::vector<Bytes> kept_;
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

    void product(const Bytes &weight, const nb::object &scale, const nb::object &bias, int outputs, int inputs,
                 const Floats &rows, bool relu, Out &out) const {
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
        static const float one = 1.0F;
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
        std::vector<int8_t> out(padded(row.shape(1), 64));
        float scale = 0.0F;
        int32_t sum = 0;
        kernels_->quantise(blocks_of(row.data(), row.shape(1)).data(), static_cast<int>(row.shape(1)), out.data(), out.size(), &scale, &sum);
        return {{out.begin(), out.begin() + static_cast<long>(row.shape(1))}, scale};
    }

    void norm(const Floats &rows, const Scale &gain, const nb::object &bias, float epsilon, bool centred, Out &out) const {
        if (gain.size() != rows.shape(1) || out.shape(0) != rows.shape(0) || out.shape(1) != rows.shape(1)) refuse("the arrays do not fit");
        const auto own = bias.is_none() ? Scale() : nb::cast<Scale>(bias);
        for (size_t row = 0; row < rows.shape(0); ++row)
            kernels_->norm(rows.data() + row * rows.shape(1), static_cast<int>(rows.shape(1)), gain.data(),
                           bias.is_none() ? nullptr : own.data(), epsilon, centred, out.data() + row * out.shape(1));
    }

    void activate(const std::string &name, Out &rows) const {
        if (rows.shape(1) % BLOCK != 0) refuse("rows must be whole blocks");
        for (size_t row = 0; row < rows.shape(0); ++row)
            kernels_->activate(rows.data() + row * rows.shape(1), static_cast<int>(rows.shape(1)),
                               chosen(ACTIVATIONS, name, "the activation"));
    }

    std::tuple<float, float, std::vector<int>> scan(const Floats &row, float threshold) const {
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
                const std::tuple<int, int, int, int> &sizes, const nb::object &slope, bool is_short, Out &weights, Out &out) const {
        const Heads heads = described(sizes);
        const size_t count = offset.size(), width = padded(count);
        const bool fits = query.shape(1) == static_cast<size_t>(heads.queries * heads.d_k) &&
                          key.shape(1) == static_cast<size_t>(heads.keys * heads.d_k) &&
                          value.shape(1) == static_cast<size_t>(heads.keys * heads.d_v) && key.shape(0) == value.shape(0) &&
                          weights.shape(0) == static_cast<size_t>(heads.queries) && weights.shape(1) == count &&
                          out.shape(1) == static_cast<size_t>(heads.queries * heads.d_v);
        for (const int place : offset)
            if (place < 0 || static_cast<size_t>(place) >= key.shape(0)) refuse("an offset lies outside");
        if (!fits || count == 0) refuse("the arrays do not fit");
        Numbers<float> room(weights.shape(0) * width);
        const std::vector<int32_t> places(offset.begin(), offset.end());
        const auto slopes = slope.is_none() ? Scale() : nb::cast<Scale>(slope);
        const Cache keys = cached(key.data(), key.size(), is_short), values = cached(value.data(), value.size(), is_short);
        kernels_->attend(query.data(), {keys.data(), values.data(), is_short, key.shape(1), value.shape(1), places.data(), static_cast<int>(count)},
                         heads, slope.is_none() ? nullptr : slopes.data(), room.data(), out.data());
        for (size_t head = 0; head < weights.shape(0); ++head)
            std::copy_n(room.data() + head * width, count, weights.data() + head * count);
    }

    // Queries (rows x heads) over one source (places x heads).
    void attend_source(const Floats &queries, const Floats &key, const Floats &value, const std::tuple<int, int, int, int> &sizes,
                       const nb::object &slope, int centre, bool is_short, Out &weights, Out &out) const {
        const Heads heads = described(sizes);
        const size_t rows = queries.shape(0), source = key.shape(0), width = padded(source);
        const bool fits = queries.shape(1) == static_cast<size_t>(heads.queries * heads.d_k) &&
                          key.shape(1) == static_cast<size_t>(heads.keys * heads.d_k) && value.shape(0) == source &&
                          value.shape(1) == static_cast<size_t>(heads.keys * heads.d_v) && out.shape(0) == rows &&
                          out.shape(1) == static_cast<size_t>(heads.queries * heads.d_v) && source > 0 &&
                          weights.shape(0) == rows * static_cast<size_t>(heads.queries) && weights.shape(1) == source;
        if (!fits) refuse("the arrays do not fit");
        Numbers<float> turned(key.shape(1) * width), room(weights.shape(0) * width);
        turn_keys(key.data(), key.shape(1), source, key.shape(1), turned.data());
        const Cache keys = cached(turned.data(), turned.size(), is_short), values = cached(value.data(), value.size(), is_short);
        const auto slopes = slope.is_none() ? Scale() : nb::cast<Scale>(slope);
        kernels_->attend_source({queries.data(), queries.shape(1), static_cast<int>(rows)},
                                {keys.data(), values.data(), is_short, static_cast<int>(source)}, heads, slope.is_none() ? nullptr : slopes.data(), centre,
                                room.data(), out.data(), out.shape(1));
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
        if (queries < 1 || keys < 1 || d_k < 1 || d_v < 1 || queries % keys != 0) refuse("the sizes of heads do not fit");
        return {queries, keys, d_k, d_v};
    }

    static Matrix described(const Bytes &weight, const nb::object &scale, const nb::object &bias, int outputs, int inputs) {
        Arrays arrays;
        const auto floats = [](const nb::object &object) { return nb::cast<Scale>(object); };
        Matrix matrix;
        matrix.data = weight.data();
        matrix.outputs = outputs;
        matrix.inputs = inputs;
        const size_t all = padded(static_cast<size_t>(outputs));
        if (!scale.is_none()) matrix.scale = floats(scale).data();
        if (!bias.is_none()) matrix.bias = floats(bias).data();
        const bool fits = (scale.is_none() || floats(scale).size() == all) && (bias.is_none() || floats(bias).size() == all) &&
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
    nb::exception<Cancelled>(module, "CancelledError");
    nb::class_<Cancel>(module, "Cancel").def(nb::init<bool>(), "value"_a = false).def("set", [](Cancel &cancel) { cancel = true; });
    nb::class_<Loaded>(module, "Model")
        .def_static("load", &load, "sizes"_a, "numbers"_a, "names"_a, "arrays"_a);
    nb::class_<Listed>(module, "Shortlist")
        .def(nb::init<const Listed::Offsets &, const Listed::Tokens &, const Listed::Tokens &, int>(), "offsets"_a, "tokens"_a, "always"_a,
             nb::kw_only(), "target_vocab"_a)
        .def("allowed", &Listed::allowed, "sources"_a);
    nb::class_<Session>(module, "Session")
        .def(nb::init<const Loaded &, const std::string &, int, const Listed *>(), "model"_a, nb::kw_only(), "kernels"_a = "auto",
             "threads"_a = 1, "shortlist"_a.none() = nb::none())
        .def("search", &Session::search, "sources"_a, nb::kw_only(), "prefixes"_a, "limits"_a, "beam"_a, "n_best"_a,
             "length_penalty"_a, "no_repeat"_a, "never"_a, "rows"_a, "cancel"_a.none() = nb::none())
        .def("score", &Session::score, "sources"_a, "targets"_a, nb::kw_only(), "cancel"_a.none() = nb::none())
        .def("attend", &Session::attend, "sources"_a, "targets"_a, nb::kw_only(), "cancel"_a.none() = nb::none())
        .def_prop_ro("kernels", &Session::kernels)
        .def_prop_ro("threads", &Session::threads);
    nb::class_<Probe>(module, "Probe")
        .def(nb::init<const std::string &>(), "kernels"_a)
        .def("product", &Probe::product, "weight"_a, nb::kw_only(), "scale"_a.none(), "bias"_a.none(), "outputs"_a, "inputs"_a, "rows"_a,
             "relu"_a, "out"_a)
        .def("sums", &Probe::sums, "weight"_a, nb::kw_only(), "outputs"_a, "inputs"_a, "rows"_a, "out"_a)
        .def("quantise", &Probe::quantise, "row"_a)
        .def("norm", &Probe::norm, "rows"_a, nb::kw_only(), "gain"_a, "bias"_a.none(), "epsilon"_a, "centred"_a, "out"_a)
        .def("activate", &Probe::activate, "name"_a, "rows"_a)
        .def("scan", &Probe::scan, "row"_a, nb::kw_only(), "threshold"_a)
        .def("attend", &Probe::attend, "query"_a, nb::kw_only(), "key"_a, "value"_a, "offset"_a, "heads"_a, "slope"_a.none(),
             "is_short"_a, "weights"_a, "out"_a)
        .def("attend_source", &Probe::attend_source, "queries"_a, nb::kw_only(), "key"_a, "value"_a, "heads"_a, "slope"_a.none(),
             "centre"_a, "is_short"_a, "weights"_a, "out"_a)
        .def("narrow", &Probe::narrow, "row"_a, nb::kw_only(), "out"_a)
        .def_prop_ro("name", &Probe::name);
    module.def("available", [] {
        std::vector<std::string> names;
        for (const char *name : {"avx512", "avx_vnni", "avx2", "portable"})
            if (find_kernels(name) != nullptr) names.emplace_back(name);
        return names;
    });
}
