/* A cubin is an ELF file. Of a kernel NAME it has the sections `.text.NAME`, `.nv.shared.NAME` and `.nv.info.NAME`; a list
 * in `.nv.info` has the registers of all. `cuobjdump -elf` and `-res-usage` print the same. */
#include "machine_code.h"

#include <elf.h>

#include <cstring>
#include <functional>
#include <vector>

namespace fake {

/* Attributes of `.nv.info`, as cuobjdump names them, and the formats of their values. */
enum : unsigned char { MAX_THREADS = 0x05, REGISTERS = 0x2f };
enum : unsigned char { SIZED = 4 };

class Elf {
  public:
    explicit Elf(const void *code) : start_(static_cast<const char *>(code)) {
        memcpy(&header_, start_, sizeof header_);
        for (unsigned i = 0; i < header_.e_shnum; i++)
            sections_.push_back(read<Elf64_Shdr>(header_.e_shoff + i * sizeof(Elf64_Shdr)));
    }

    const std::vector<Elf64_Shdr> &sections() const { return sections_; }

    std::string name(const Elf64_Shdr &section) const { return text(header_.e_shstrndx, section.sh_name); }

    std::string symbol(unsigned index) const {
        for (const Elf64_Shdr &section : sections_)
            if (section.sh_type == SHT_SYMTAB)
                return text(section.sh_link, read<Elf64_Sym>(section.sh_offset + index * sizeof(Elf64_Sym)).st_name);
        return "";
    }

    /* Calls for each attribute that has a list of words. */
    void attributes(const Elf64_Shdr &section,
                    const std::function<void(unsigned char, const std::vector<uint32_t> &)> &call) const {
        const size_t end = section.sh_offset + section.sh_size;
        for (size_t at = section.sh_offset; at + 4 <= end;) {
            const auto format = read<unsigned char>(at), attribute = read<unsigned char>(at + 1);
            const size_t size = format == SIZED ? read<uint16_t>(at + 2) : 0;
            std::vector<uint32_t> words;
            for (size_t i = 0; i + 4 <= size; i += 4)
                words.push_back(read<uint32_t>(at + 4 + i));
            call(attribute, words);
            at += 4 + size;
        }
    }

  private:
    template <class T> T read(size_t offset) const {
        T value;
        memcpy(&value, start_ + offset, sizeof value);
        return value;
    }

    std::string text(size_t strings, size_t offset) const { return start_ + sections_[strings].sh_offset + offset; }

    const char *start_;
    Elf64_Ehdr header_;
    std::vector<Elf64_Shdr> sections_;
};

/* The rest of a text that begins so; empty for another one. */
static std::string after(const std::string &text, const std::string &start) {
    return text.compare(0, start.size(), start) ? "" : text.substr(start.size());
}

std::map<std::string, Limits> limits_of(const void *code) {
    std::map<std::string, Limits> found;
    if (memcmp(code, ELFMAG, SELFMAG) != 0)
        return found;
    const Elf elf(code);
    for (const Elf64_Shdr &section : elf.sections())
        if (const std::string kernel = after(elf.name(section), ".text."); !kernel.empty())
            found[kernel];
    for (const Elf64_Shdr &section : elf.sections()) {
        const std::string name = elf.name(section);
        if (const auto kernel = found.find(after(name, ".nv.shared.")); kernel != found.end())
            kernel->second.shared = section.sh_size;
        if (const auto kernel = found.find(after(name, ".nv.info.")); kernel != found.end())
            elf.attributes(section, [&](unsigned char attribute, const std::vector<uint32_t> &words) {
                if (attribute == MAX_THREADS)
                    kernel->second.most_threads = words[0] * words[1] * words[2];
            });
        if (name == ".nv.info")
            elf.attributes(section, [&](unsigned char attribute, const std::vector<uint32_t> &words) {
                if (attribute != REGISTERS)
                    return;
                if (const auto kernel = found.find(elf.symbol(words[0])); kernel != found.end())
                    kernel->second.registers = words[1];
            });
    }
    return found;
}

} // namespace fake
