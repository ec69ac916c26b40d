// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.35;

import {IRentalEscrow} from "../src/IRentalEscrow.sol";
import {MiniTest} from "./MiniTest.sol";

interface IUsdc {
    function initialize(
        string calldata name,
        string calldata symbol,
        string calldata currency,
        uint8 decimals,
        address masterMinter,
        address pauser,
        address blacklister,
        address owner
    ) external;
    function initializeV2(string calldata name) external;
    function initializeV2_1(address lostAndFound) external;
    function initializeV2_2(address[] calldata blacklisted, string calldata symbol) external;
    function configureMinter(address minter, uint256 allowance) external returns (bool);
    function mint(address to, uint256 amount) external returns (bool);
    function approve(address spender, uint256 amount) external returns (bool);
    function transfer(address to, uint256 amount) external returns (bool);
    function balanceOf(address account) external view returns (uint256);
    function pause() external;
    function unpause() external;
    function blacklist(address account) external;
    function unBlacklist(address account) external;
    function paused() external view returns (bool);
    function isBlacklisted(address account) external view returns (bool);
    function DOMAIN_SEPARATOR() external view returns (bytes32);
}

interface IEscrow is IRentalEscrow {
    function MAX_FEE_BPS() external view returns (uint256);
}

/// @title Circle's token behind its proxy, the escrow as it is shipped, and the people
/// @dev Both are deployed from their committed bytes, so what is tested is what users get.
abstract contract World is MiniTest {
    bytes32 internal constant REPORT = keccak256("report");
    uint256 internal constant START = 1_900_000_000;
    uint256 internal constant PURSE = 1 << 100;
    address internal constant CIRCLE = address(0xC1);

    IUsdc internal usdc;
    IEscrow internal escrow;
    uint256 internal salts;
    address[] internal anyone;
    mapping(address => uint256) private keyOf;
    address internal renter;
    address internal otherRenter;
    address internal provider;
    address internal otherProvider;
    address internal feeTaker;
    address internal session;
    address internal constant STRANGER = address(0x5742);

    function setUp() public virtual {
        vm.warp(START);
        renter = _person(11);
        otherRenter = _person(12);
        provider = _person(13);
        otherProvider = _person(14);
        feeTaker = _person(15);
        session = _person(16);
        usdc = _token();
        escrow = IEscrow(_deploy(abi.encodePacked(_code("escrow"), abi.encode(address(usdc)))));
        _fund(renter);
        _fund(otherRenter);
    }

    // ---- what people do -----------------------------------------------------------------------------------

    function quoteOf(address from, address to) internal returns (IRentalEscrow.Quote memory quote) {
        quote.provider = from;
        quote.renter = to;
        quote.pricePerHour = 400_000;
        quote.minSeconds = 60;
        quote.maxSeconds = 36_000;
        quote.startWindow = 600;
        quote.inspectionSeconds = 900;
        quote.validUntil = uint64(block.timestamp + 600);
        quote.salt = bytes32(++salts);
    }

    function create(IRentalEscrow.Quote memory quote, uint256 key, uint32 seconds_) internal returns (bytes32) {
        bytes memory signature = signed(quote.provider, escrow.quoteDigest(quote));
        vm.prank(quote.renter);
        return escrow.create(bytes32(key), quote, signature, seconds_, type(uint256).max, 0);
    }

    function createBy(address who, IRentalEscrow.Quote memory quote, uint256 key, uint32 seconds_)
        internal
        returns (bytes32)
    {
        bytes memory signature = signed(quote.provider, escrow.quoteDigest(quote));
        vm.prank(who);
        return escrow.createFromBudget(bytes32(key), quote, signature, seconds_, type(uint256).max, 0, anyone);
    }

    function active(uint256 key) internal returns (bytes32 id) {
        id = create(quoteOf(provider, renter), key, 3600);
        vm.prank(provider);
        escrow.activate(id, keccak256("ready"));
    }

    function termsOf(address owner, uint96 cap) internal returns (IRentalEscrow.BudgetTerms memory) {
        uint40 expiry = uint40(block.timestamp + 1 days);
        return IRentalEscrow.BudgetTerms(owner, session, cap, 500_000, expiry, 0, bytes32(++salts));
    }

    function openBudget(IRentalEscrow.BudgetTerms memory terms) internal {
        bytes memory signature = signed(terms.owner, authorization(terms));
        escrow.openBudget(terms, signature);
    }

    function authorization(IRentalEscrow.BudgetTerms memory terms) internal view returns (bytes32) {
        bytes32 kind = keccak256(
            "ReceiveWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,"
            "bytes32 nonce)"
        );
        bytes32 nonce = escrow.budgetDigest(terms);
        bytes32 hash = keccak256(abi.encode(kind, terms.owner, address(escrow), terms.cap, 0, terms.expiry, nonce));
        return keccak256(abi.encodePacked(hex"1901", usdc.DOMAIN_SEPARATOR(), hash));
    }

    function signed(address who, bytes32 digest) internal view returns (bytes memory) {
        if (keyOf[who] == 0) return "";
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(keyOf[who], digest);
        return abi.encodePacked(r, s, v);
    }

    function later(uint256 seconds_) internal {
        vm.warp(block.timestamp + seconds_);
    }

    // ---- set-up -------------------------------------------------------------------------------------------

    function _token() private returns (IUsdc made) {
        address checker = _deploy(_code("checker"));
        bytes memory code = _code("token");
        uint256[] memory places = vm.parseJsonUintArray(vm.readFile("code/links.json"), ".links");
        for (uint256 i = 0; i < places.length; ++i) {
            for (uint256 j = 0; j < 20; ++j) {
                code[places[i] + j] = bytes20(checker)[j];
            }
        }
        bytes memory proxy = abi.encodePacked(_code("proxy"), abi.encode(_deploy(code)));
        vm.prank(address(0xAD));
        made = IUsdc(_deploy(proxy));
        made.initialize("USD Coin", "USDC", "USD", 6, CIRCLE, CIRCLE, CIRCLE, CIRCLE);
        made.initializeV2("USD Coin");
        made.initializeV2_1(CIRCLE);
        vm.prank(CIRCLE);
        made.initializeV2_2(new address[](0), "USDC");
        vm.prank(CIRCLE);
        made.configureMinter(CIRCLE, type(uint256).max);
    }

    function _person(uint256 key) private returns (address who) {
        who = vm.addr(key);
        keyOf[who] = key;
    }

    function _fund(address who) private {
        vm.prank(CIRCLE);
        usdc.mint(who, PURSE);
        vm.prank(who);
        usdc.approve(address(escrow), type(uint256).max);
    }

    function _code(string memory name) private view returns (bytes memory) {
        return vm.parseBytes(vm.readFile(string.concat("code/", name, ".hex")));
    }

    function _deploy(bytes memory code) private returns (address made) {
        assembly ("memory-safe") {
            made := create(0, add(code, 32), mload(code))
        }
        require(made != address(0), "not deployed");
    }
}
